"""A run on the Hugging Face Hub: `python -m grpo.publish RUN --to OWNER/NAME`. Torch is not imported here."""

"""What a run came to: `python -m grpo.report RUN...`. Torch is not imported here."""

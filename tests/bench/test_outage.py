"""The judge's drill by its command, as small as it can be."""

from bench import outage


def test_a_run_survives_a_judge_that_fails_in_every_way(capfd) -> None:
    settings = (
        "warm_start.steps=100",
        "sample.max_completion_length=260",
        "reward.vlm.tries=2",
        "reward.vlm.pause_s=1",
    )
    more = [part for setting in settings for part in ("--set", setting)]
    code = outage.main(["--steps", "2", "--group", "3", "--dark", "6", "--seed", "1", *more])
    said = capfd.readouterr().out
    found = dict(field.split("=") for field in said.strip().splitlines()[-1].split())
    assert code == 0, said
    names = "steps crash paid_twice phantom_zeros wrong_comparisons unscored missing outages waited_s"
    assert list(found) == names.split()
    assert found["steps"] == "2"
    assert [found[key] for key in ("crash", "paid_twice", "phantom_zeros", "wrong_comparisons")] == ["0"] * 4
    assert int(found["outages"]) >= 1
    assert "judge is back after" in said
    assert "The judge over the run" in said

"""The stand-ins against cheating, and for a slope that a weak policy can climb.

A painting of the pool is always scored by stand-ins that have never seen it (leave one out).
"""

from dataclasses import replace

import numpy as np
import pytest

from grpo.grammar import GROUNDS, LEAF_COLOURS, PALETTES, draw_decisions, sample_sketch, write_sketch
from render.errors import ConfigError
from render.painting import Outcome, Painting
from reward.base import Candidate
from reward.judge import build_judge
from reward.local import PoolJudgeStandIn, PreferenceStandIn, Study
from reward.pool import Pool
from reward.settings import RewardSettings, SubjectSettings, WeightSettings

WEIGHTS = WeightSettings()
PREFERENCE_SHARE = WEIGHTS.preference / (WEIGHTS.preference + WEIGHTS.judge)


def judge_of(study):
    return build_judge(RewardSettings(), SubjectSettings(), lambda: study)


def scores(study, references, png):
    """(preference, judge, their mix) of one picture."""
    candidate = Candidate("", "", Painting(Outcome.PAINTED, png=png))
    preference = PreferenceStandIn(study).score(candidate, references).value
    judge = judge_of(study).score(candidate, references).value
    return preference, judge, PREFERENCE_SHARE * preference + (1 - PREFERENCE_SHARE) * judge


@pytest.fixture(scope="module")
def pool_scores(pool):
    """Scores of every painting of the pool by name, left out of what judges it."""

    def left_out(reference):
        rest = pool.without(reference.name)
        return scores(Study(rest), rest.references, reference.png)

    return {reference.name: left_out(reference) for reference in pool.references}


@pytest.fixture(scope="module")
def grammar_scores(gallery, study, pool):
    """(sketches, 3) scores of what the small policy knows before it is trained."""
    generator = np.random.default_rng(7)
    paintings = gallery({f"grammar {index}": sample_sketch(generator) for index in range(16)})
    return np.array([scores(study, pool.references, png) for png in paintings.values()])


@pytest.fixture(scope="module")
def corner_scores(gallery, study, pool):
    """The same of sketches of that grammar whose place, size and colours were chosen with taste."""
    generator = np.random.default_rng(8)
    sketches = {}
    for index in range(6):
        chosen = {
            "ground": GROUNDS[index % 2],
            "palette": tuple(shades[0] for shades in PALETTES[index % 3]),
            "leaf": LEAF_COLOURS[index % 4],
            "centre": (300, (240, 300)[index % 2]),
            "petals": 5 + index % 2,
            "layers": 2,
            "reach": 195,
            "spread": 38,
            "green": "stem and leaves",
            "layering": "washes",
        }
        sketches[f"corner {index}"] = write_sketch(replace(draw_decisions(generator), **chosen))
    return np.array([scores(study, pool.references, png) for png in gallery(sketches).values()])


def test_no_hacked_canvas_reaches_the_weakest_okay_painting(hacked, pool, study, pool_scores):
    assert len(hacked) >= 10
    weakest = np.min([pool_scores[reference.name] for reference in pool.tier("okay")], axis=0)
    for name, png in hacked.items():
        found = scores(study, pool.references, png)
        for scorer, score, floor in zip(("preference", "judge", "mix"), found, weakest, strict=True):
            assert score < floor, f"{name}: {scorer} {score:.3f}, weakest okay painting {floor:.3f}"


def test_love_scores_above_okay(pool, pool_scores):
    love, okay = (np.array([pool_scores[r.name] for r in pool.tier(tier)]).mean(axis=0) for tier in ("love", "okay"))
    assert (love > okay + 0.05).all()


def test_the_small_policys_sketches_spread_widely(grammar_scores):
    mix = grammar_scores[:, 2]
    assert 0.2 < mix.mean() < 0.5
    assert mix.std() > 0.1
    assert len(np.unique(mix.round(4))) == len(mix)


def test_the_small_policy_can_climb_by_choosing_well(grammar_scores, corner_scores):
    assert (corner_scores.mean(axis=0) > grammar_scores.mean(axis=0) + 0.12).all()
    assert corner_scores[:, 2].mean() > grammar_scores[:, 2].mean() + 0.2


def test_the_judge_asks_both_orders_alike(pool, study):
    judge = PoolJudgeStandIn(study)
    first, second = pool.tier("love")[0].png, pool.tier("okay")[0].png
    assert judge.compare(first, second) + judge.compare(second, first) == pytest.approx(1.0)
    assert judge.compare(first, first) == pytest.approx(0.5)


def test_the_judges_score_is_the_mean_over_the_references(pool, study):
    judge = judge_of(study)
    candidate = Candidate("", "", Painting(Outcome.PAINTED, png=pool.tier("okay")[1].png))
    whole = judge.score(candidate, pool.references[:4])
    alone = [judge.score(candidate, [reference]).value for reference in pool.references[:4]]
    assert whole.value == pytest.approx(np.mean(alone))
    assert set(whole.info["won"]) == {reference.name for reference in pool.references[:4]}


def test_what_cannot_be_seen_is_not_scored(pool, study):
    painted = Candidate("", "", Painting(Outcome.PAINTED, png=pool.references[0].png))
    for term in (PreferenceStandIn(study), judge_of(study)):
        assert term.stand_in
        unseen = term.score(Candidate("", "", None), pool.references)
        assert unseen.value is None
        assert unseen.cause
    assert judge_of(study).score(painted, ()).value is None


def test_a_pool_of_one_tier_is_refused(pool):
    with pytest.raises(ConfigError, match="at least 2 paintings of each tier"):
        Study(Pool(pool.tier("love"), "here"))

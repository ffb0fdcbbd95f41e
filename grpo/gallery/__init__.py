"""One static folder that shows every painting of one or more runs: `python -m grpo.gallery RUN... [-o FOLDER]`.

    index.html page/             the page, hand-written, without a framework
    data/runs.js                 the runs and their settings; written last, only when something changed
    data/RUN/wall.js             a line a step: what the wall, the film and the filters need of each painting
    data/RUN/steps.js            the run's table
    data/RUN/flight.js           the rollouts of the step in flight
    data/RUN/step_0001.js        reply, sketch, verdict and timings of each rollout, read when a painting is opened
    data/RUN/fields_0001.js      mean colours of the paintings in fields of 8 x 8 pixels, for the live repainting
    paintings/ thumbs/           the paintings (hard links where the disk allows it) and small ones for the wall
    references/                  the pool's paintings that the judge compared with
    studio/                      p5, p5.brush and the sealed page, with their licences: they paint a sketch again live
    .gallery.json                how far each run was read

The folder opens from disk and from any web host. Data comes as classic scripts, because a page from disk may read
nothing else. A second call reads on where the first one stopped and writes only what is new.
"""

from __future__ import annotations

from grpo.gallery.builder import build

__all__ = ["build"]

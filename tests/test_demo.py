from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from medi import demo
from medi.methods.mp import MP
from medi.report.contact_sheet import Strip, Thumbnail, contact_sheet


def test_the_demo_trains_scores_draws_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "DEMO_EPISODES", 3)
    cpu = MP.presets["cpu"]
    quick = replace(cpu, network="mlp", queries=3, images=60, schedule=replace(cpu.schedule, steps=8))
    monkeypatch.setattr(MP, "presets", {**MP.presets, "cpu": quick})
    (tmp_path / "results.jsonl").write_text("kept")
    (tmp_path / "discovered.png").write_text("of the last time")
    demo.run_demo(tmp_path)
    picture = Image.open(tmp_path / "discovered.png")
    assert picture.width > 600
    assert np.asarray(picture).std() > 10  # something is drawn
    assert (tmp_path / "results.jsonl").read_text() == "kept"
    assert {path.name for path in tmp_path.iterdir()} == {"results.jsonl", "discovered.png"}


@pytest.mark.parametrize("channels", [1, 3])
def test_a_contact_sheet_frames_the_wrong_ones_in_red(channels):
    image = np.full((channels, 32, 32), 200, np.uint8)
    strips = [Strip("group 1", "", [Thumbnail(image)], [Thumbnail(image, wrong=True)]), Strip("group 2", "", [], [])]
    pixels = np.asarray(contact_sheet(strips, "title", "legend")).astype(int)
    red = (pixels[:, :, 0] > 180) & (pixels[:, :, 1] < 80) & (pixels[:, :, 2] < 80)
    assert red.any()
    plain = [Strip("group 1", "", [Thumbnail(image)], [])]
    pixels = np.asarray(contact_sheet(plain, "title", "legend")).astype(int)
    assert not ((pixels[:, :, 0] > 180) & (pixels[:, :, 1] < 80) & (pixels[:, :, 2] < 80)).any()

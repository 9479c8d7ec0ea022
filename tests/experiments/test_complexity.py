"""Costs of a method's steps and discoveries are those that a count by hand gives; what was measured is kept."""

import sys

import complexity
import complexity_methods as methods
import pytest
from complexity_page import section
from script import Parser, read_json

from medi.core.errors import InputError

TINY = methods.Shape(tasks=2, way=2, observations=1, queries=2, inner=1, small=True)


def conv4(side: int) -> tuple[int, int]:
    """FLOPs of Conv-4's forward pass of one image by M N K² H W a layer, and those of its first layer."""
    layers = [2 * 9 * m * 64 * (side // 2**i) ** 2 for i, m in enumerate((3, 64, 64, 64))]
    return sum(layers), layers[0]


def test_costs_are_measured_written_and_tabulated_and_further_methods_are_added(tmp_path, monkeypatch, capsys):
    for shapes in (complexity.SHAPES, complexity.GROWTH):
        monkeypatch.setitem(shapes, True, TINY)
    monkeypatch.setattr(complexity, "CLASSES", 8)
    monkeypatch.setattr(complexity, "EACH", 16)
    out = tmp_path / "new" / "cpu.json"
    for name in ("K-means on pixels", "MP"):
        words = ["--device", "cpu", "--small", "--repeats", "1", "--out", str(out), "--methods", name]
        monkeypatch.setattr(sys, "argv", ["complexity.py", *words])
        complexity.main(Parser())
    mp, kmeans = read_json(out)["methods"]
    (stage,), (whole, first) = mp["training"], conv4(32)
    assert (stage["images"], kmeans["training"]) == (12, [])
    assert stage["flops"] == pytest.approx(12 * (3 * whole - first), rel=1e-3)
    assert mp["discovery"]["flops"] == pytest.approx(6 * whole, rel=1e-2)
    assert set(kmeans["growth"]) == {"way", "images"}
    assert mp["growth"]["tasks"]["training"]["flops"]["exponent"] == pytest.approx(1, abs=0.01)
    assert section(read_json(out)) in capsys.readouterr().out
    with pytest.raises(InputError, match="has K-means on pixels measured with another torch"):
        complexity.kept(out, {"torch": "another"}, ["MP"])
    with pytest.raises(InputError, match=r"no figures of complexity\.py"):
        section({"methods": [{"method": "MP"}]})

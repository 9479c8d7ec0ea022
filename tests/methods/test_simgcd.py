"""SimGCD: its losses against loops, its gradients against finite differences, its schedule."""

import math
from dataclasses import replace

import pytest
import torch
from small_sets import KNOWN, cosines, generator
from torch.nn.functional import normalize, one_hot

from medi.methods import Plan
from medi.methods.bag_training import BagStage, ObservedBag
from medi.methods.pretraining import Pretraining
from medi.methods.simgcd import SimGCD, contrastive_loss, mean_entropy, targets
from medi.methods.unified import Prototypes, swapped_loss
from medi.nn.context import Context
from medi.nn.schedule import Schedule

QUICK = SimGCD(
    Pretraining("classes", "mlp", batch=64, schedule=Schedule(steps=60, rate=1e-2)),
    BagStage(1, 100, least_steps=25, schedule=Schedule(steps=1, rate=1e-2)),
    known=32,
    hidden=64,
)


def softmax(values: list[float], temperature: float) -> list[float]:
    weights = [math.exp(value / temperature) for value in values]
    return [weight / sum(weights) for weight in weights]


def distillation_by_loops(cosines: torch.Tensor, known: int, classes: int, sharp: float) -> float:
    items, total = len(cosines) // 2, 0.0
    rows = cosines.tolist()
    for student, teacher in ((rows[:items], rows[items:]), (rows[items:], rows[:items])):
        for i in range(items):
            padding = [0.0] * (len(rows[0]) - classes), [0.0] * classes
            own = softmax(teacher[i][:classes], sharp) + padding[0]
            target = own if i < known else padding[1] + softmax(teacher[i][classes:], sharp)
            total -= sum(t * math.log(p) for t, p in zip(target, softmax(student[i], 0.1), strict=True))
    return total / (2 * items)


def distillation_loss(cosines: torch.Tensor, known: int, classes: int, sharp: float) -> torch.Tensor:
    return swapped_loss(cosines, 0.1, lambda source: targets(source / sharp, known, classes))


def test_distillation_is_its_formula_written_with_loops():
    outputs = cosines(10, 5)
    loss = distillation_loss(outputs, 2, 3, 0.06)
    assert float(loss) == pytest.approx(distillation_by_loops(outputs, 2, 3, 0.06))


def test_the_entropy_is_that_of_the_mean_output_and_largest_for_clusters_of_equal_size():
    logits = 5 * cosines(6, 3)
    mean = [sum(row[c] for row in (softmax(one, 1.0) for one in logits.tolist())) / 6 for c in range(3)]
    assert float(mean_entropy(logits)) == pytest.approx(-sum(p * math.log(p) for p in mean))
    equal, unequal = (100 * one_hot(torch.tensor(groups), 2).double() for groups in ([0, 0, 1, 1], [0, 0, 0, 1]))
    assert float(mean_entropy(equal)) == pytest.approx(math.log(2))
    assert mean_entropy(unequal) < mean_entropy(equal)
    assert float(mean_entropy(100 * one_hot(torch.zeros(4, dtype=torch.int64), 2).double())) == pytest.approx(0)
    assert SimGCD.assumes_equal_sizes


@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 0]], ids=["images", "classes"])
def test_the_contrast_is_its_formula_written_with_loops(labels):
    points, total = normalize(cosines(6, 4), dim=1), 0.0
    for i in range(6):
        others = [j for j in range(6) if j != i]
        weights = {j: math.exp(float(points[i] @ points[j]) / 0.3) for j in others}
        positives = [j for j in others if labels[j] == labels[i]]
        total -= sum(math.log(weights[j] / sum(weights.values())) for j in positives) / len(positives) / 6
    assert float(contrastive_loss(points, torch.tensor(labels), 0.3)) == pytest.approx(total)


def test_distillation_passes_gradients_to_the_student_alone():
    outputs = cosines(8, 4).requires_grad_()
    distillation_loss(outputs, 2, 2, 0.04).backward()
    teacher = [part.softmax(-1) for part in (outputs.detach() / 0.04)[:, 2:].chunk(2)]
    known = [part.softmax(-1) for part in (outputs.detach() / 0.04)[:, :2].chunk(2)]
    target = torch.cat([torch.block_diag(known[one][:2], teacher[one][2:]) for one in (1, 0)])
    expected = ((outputs.detach() / 0.1).softmax(-1) - target) / 0.1 / 8  # of a cross-entropy with fixed targets
    torch.testing.assert_close(outputs.grad, expected)


def test_the_loss_of_a_step_is_the_weighted_sum_of_its_five_terms():
    method = replace(QUICK, entropy=1.5, labelled=0.3)
    learner = method.fit(KNOWN, Plan(way=3, observations=5))
    network, known = learner.learnt.network, Prototypes(learner.learnt.means)
    model = method.begin(network, known, ObservedBag(KNOWN.images, 3, None, Context(), learner)).eval()
    views, labels = torch.randn(14, 8, generator=generator()), torch.tensor([0, 0, 5])
    features, outputs = model.outputs(views)
    points = normalize(model.project(features), dim=1)
    of_known = torch.tensor([0, 1, 2, 7, 8, 9])
    novel = torch.cat([outputs[3:7, 8:], outputs[10:, 8:]])
    unlabelled = distillation_loss(outputs, 3, 8, method.sharp_at(0.5))
    unlabelled += contrastive_loss(points, torch.arange(7).repeat(2), 1.0) - 1.5 * mean_entropy(novel / 0.1)
    supervised = torch.nn.functional.cross_entropy(outputs[of_known] / 0.1, labels.repeat(2))
    supervised += contrastive_loss(points[of_known], labels.repeat(2), 0.07)
    loss = method.loss(model, views, labels, 0.5, None)
    torch.testing.assert_close(loss, 0.7 * unlabelled + 0.3 * supervised, rtol=1e-4, atol=1e-5)


def test_the_teacher_is_sharpened_over_the_warm_up_and_then_stays():
    assert [SimGCD().sharp_at(done) for done in (0, 0.075, 0.15, 1)] == pytest.approx([0.07, 0.055, 0.04, 0.04])
    assert replace(SimGCD(), warm_up=0.0).sharp_at(0.0) == pytest.approx(0.04)

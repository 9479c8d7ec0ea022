import io

from rich.console import Console

from medi.core.progress import Reporter, Silent


def test_outside_a_terminal_a_line_is_written_now_and_then(monkeypatch):
    monkeypatch.setattr(Reporter, "PLAIN_SECONDS", 0.0)
    text = io.StringIO()
    reporter = Reporter(Console(file=text))
    with reporter.track("training", 10) as tick:
        tick(5, "loss 1.0")
    assert text.getvalue().startswith("training: 5/10, about ")
    assert "loss 1.0" in text.getvalue()


def test_silence_is_silent(capsys):
    silent = Silent()
    silent.say("hello")
    with silent.track("training", 10) as tick:
        tick(10)
    assert capsys.readouterr() == ("", "")


def test_work_inside_work_has_a_line_of_the_same_display():
    text = io.StringIO()
    reporter = Reporter(Console(file=text, force_terminal=True, width=120))
    for _ in range(2):
        with reporter.track("scoring", 2) as outer:
            for step in range(2):
                with reporter.track("training", 10) as inner:
                    inner(10)
                outer(step + 1)
    assert "scoring" in text.getvalue()
    assert "training" in text.getvalue()

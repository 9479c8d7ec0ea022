"""What local workers do in tests; each function takes an item as JSON, and a reporter."""

import json
import os
import sys
import time
from pathlib import Path

from medi.core.progress import Reporter

NOTES = "NOTES_OF_WORKERS"
"""Names the file in which items are noted as they are begun."""


def echo(item: str, reporter: Reporter) -> str:
    begun(item)
    return json.dumps({"rows": [json.loads(item)]})


def killed(item: str, reporter: Reporter) -> str:
    begun(item)
    os.kill(os.getpid(), 9)
    raise AssertionError


def first_killed_once(item: str, reporter: Reporter) -> str:
    return killed(item, reporter) if number(item) == 0 and "0" not in notes() else echo(item, reporter)


def exits(item: str, reporter: Reporter) -> str:
    begun(item)
    sys.exit(3)


def short_of_memory(item: str, reporter: Reporter) -> str:
    begun(item)
    raise MemoryError


def first_fails(item: str, reporter: Reporter) -> str:
    """The first item is at fault, the second ends its worker; the others are answered."""
    if number(item) == 0:
        return json.dumps({"error": "no such data: fetch it."})
    return exits(item, reporter) if number(item) == 1 else echo(item, reporter)


def first_at_fault_others_endless(item: str, reporter: Reporter) -> str:
    if number(item) == 0:
        return json.dumps({"error": "no such data: fetch it."})
    time.sleep(300)
    raise AssertionError


def talks(item: str, reporter: Reporter) -> str:
    sys.stdout.write("not for the output\n")
    reporter.say("hello")
    with reporter.track("training", 50) as tick:
        for done in range(50):
            tick(done)
    told = {"threads": os.environ.get("OMP_NUM_THREADS"), "gpu": os.environ.get("CUDA_VISIBLE_DEVICES")}
    return json.dumps({"rows": [told]})


def number(item: str) -> int:
    found: int = json.loads(item)["number"]
    return found


def begun(item: str) -> None:
    if NOTES in os.environ:
        with Path(os.environ[NOTES]).open("a") as file:
            file.write(f"{number(item)}\n")


def notes() -> list[str]:
    file = Path(os.environ[NOTES])
    return file.read_text().split() if file.exists() else []

"""A reporter that keeps what it is told."""

from medi.core.progress import Silent


class Listener(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, message: str) -> None:
        self.heard.append(message)

"""`--ray [ADDRESS]`: a grid or the encoding of photos on a Ray cluster, or on a Ray started on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Any

from medi.core.errors import InputError, LostError
from medi.core.extras import imported
from medi.core.progress import Reporter
from medi.jobs.workers import SHOW_SECONDS, Rows, WorkItem, rows_of_answer

LOCAL = "local"
"""As an address: start a Ray on this machine for the time of the work."""
RETRIES = 3
"""How often an item is begun again whose worker or machine was lost."""
CONNECT_SECONDS = 10.0


class RayWorkers:
    """A Ray cluster that does items of work: each asks for so many processors and GPUs; a fraction shares one.

    The address is as `ray.init` takes it: `auto` for the cluster this machine belongs to, or `LOCAL`. `do` does an
    item, given as JSON, and gives an answer (`medi.jobs.workers.answer`). `what` the items are, in the plural, and what
    to do `again` where one of them is lost, is said to people.
    """

    def __init__(
        self, address: str, cpus: float, gpus: float, do: Callable[[str], str], *, what: str, again: str
    ) -> None:
        self.address, self.cpus, self.gpus, self.do = address, cpus, gpus, do
        self.what, self.again = what, again

    def __call__(self, items: Sequence[WorkItem], reporter: Reporter) -> Generator[Rows, None, None]:
        """Yield the rows of each item as it is finished."""
        ray = imported("ray", "ray", "--ray")
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        task = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=RETRIES)(self.do)
        cpus, gpus = (ray.cluster_resources().get(kind, 0) for kind in ("CPU", "GPU"))
        reporter.say(f"{len(items)} {self.what} for {len(ray.nodes())} Ray nodes: {cpus:g} CPUs, {gpus:g} GPUs.")
        waiting = {task.remote(item.as_json()): item for item in items}
        try:
            with reporter.track(self.what, len(items)) as tick:
                while waiting:
                    ready, _ = ray.wait(list(waiting), timeout=SHOW_SECONDS)
                    for reference in ready:
                        yield rows_of_answer(self._answer(ray, reference, waiting.pop(reference)))
                    tick(len(items) - len(waiting))
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        # Workers need these two of our variables; on a cluster the folders must be the same for all.
        variables = {name: os.environ[name] for name in ("MEDI_DATA", "MEDI_CACHE") if name in os.environ}
        try:
            _check_address(self.address)
            ray.init(
                address=self.address,
                log_to_driver=False,
                include_dashboard=False if self.address == LOCAL else None,
                runtime_env={"env_vars": variables},
            )
        except (OSError, ValueError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(
                f"--ray {self.address}: {reason}; start a cluster with `ray start --head`, or leave the address out."
            ) from error

    def _answer(self, ray: Any, reference: Any, item: WorkItem) -> str:
        try:
            answer: str = ray.get(reference)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise LostError(
                f"Ray lost {item.describe()} ({reason}): what was finished is kept, {self.again}."
            ) from error
        return answer


def _check_address(address: str) -> None:
    """Fail at once where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()

"""`--ray [ADDRESS]`: a grid or a pool of photos on a Ray cluster, or on a Ray of this machine's own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Any

from medi.bench.work import Piece, Rows, do, rows_of_answer
from medi.errors import InputError, LostError
from medi.runtime.progress import Reporter

LOCAL = "local"
"""As an address: start a Ray on this machine for the time of the work."""
RETRIES = 3
"""How often a piece of work is begun again whose worker or machine was lost."""
SHOW_SECONDS = 1.0
KNOCK_SECONDS = 10.0


class OnRay:
    """A Ray cluster that does orders.

    Args:
        address: Of the cluster, as `ray.init` takes it; `auto` for the one this machine belongs to, or `LOCAL`.
        cpus: Processors a piece of work asks for.
        gpus: GPUs it asks for; a fraction shares one.
        do: What does an order.
        what: What the orders are, in the plural.
        again: What to do where one of them is lost.
    """

    def __init__(
        self,
        address: str,
        cpus: float = 1,
        gpus: float = 0,
        do: Callable[[str], str] = do,
        *,
        what: str = "trainings",
        again: str = "go on with --resume",
    ) -> None:
        self.address, self.cpus, self.gpus, self.do = address, cpus, gpus, do
        self.what, self.again = what, again

    def __call__(self, orders: Sequence[Piece], reporter: Reporter) -> Generator[Rows, None, None]:
        """Yield the rows of each order as it is finished."""
        ray = _import()
        ours = not ray.is_initialized()
        if ours:
            self._connect(ray)
        task = ray.remote(num_cpus=self.cpus, num_gpus=self.gpus, max_retries=RETRIES)(self.do)
        cpus, gpus = (ray.cluster_resources().get(kind, 0) for kind in ("CPU", "GPU"))
        reporter.say(f"{len(orders)} {self.what} for {len(ray.nodes())} Ray nodes: {cpus:g} CPUs, {gpus:g} GPUs.")
        waiting = {task.remote(order.as_json()): order for order in orders}
        try:
            with reporter.track(self.what, len(orders)) as tick:
                while waiting:
                    ready, _ = ray.wait(list(waiting), timeout=SHOW_SECONDS)
                    for reference in ready:
                        yield rows_of_answer(self._answer(ray, reference, waiting.pop(reference)))
                    tick(len(orders) - len(waiting))
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)
            if ours:
                ray.shutdown()

    def _connect(self, ray: Any) -> None:
        # Where data lies is all of our environment that workers need; on a cluster, the same for all.
        variables = {name: os.environ[name] for name in ("MEDI_DATA", "MEDI_CACHE") if name in os.environ}
        try:
            _knock(self.address)
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

    def _answer(self, ray: Any, reference: Any, order: Piece) -> str:
        try:
            answer: str = ray.get(reference)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise LostError(
                f"Ray lost {order.describe()} ({reason}): what was finished is kept, {self.again}."
            ) from error
        return answer


def _knock(address: str) -> None:
    """Fail at once where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=KNOCK_SECONDS).close()


def _import() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError("--ray needs Ray: pip install 'medi[ray]', or leave it out.") from error
    return ray

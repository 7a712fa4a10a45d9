"""Run an action on Spark: report its progress, count its retries and shuffled bytes, and translate its errors."""

import json
import logging
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from stirred import errors
from stirred.engine.base import Steps
from stirred.engine.spark.tasks import ERROR_PREFIX, RUN_AGAIN_FIX
from stirred.errors import ClusterError, StirredError

T = TypeVar("T")
LOG = logging.getLogger("stirred.engine")
PAUSE_SECONDS = 0.2  # seconds between two checks of the progress
SETTLE_MILLISECONDS = 10_000  # milliseconds to wait for the last events of an action


class ActionWatch:
    """Runs actions on a Spark context and counts shuffled bytes and retries."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.written: dict[tuple[int, int], int] = {}  # shuffle bytes by stage and attempt
        self.retried = 0

    def run(self, action: Callable[[], T], steps: Steps | None = None, total: int = 0) -> T:
        """Run the action; ``steps`` is called with the finished parts and ``total``, and may stop it by raising."""
        from py4j.protocol import Py4JError

        tag = f"stirred-{uuid.uuid4().hex}"
        with translate_errors():
            try:
                if steps is None:
                    return self._run_tagged(action, tag)
                return self._run_with_steps(action, tag, steps, total)
            finally:
                # Spark deletes information on old stages, which are not counted; or its process has ended
                with suppress(Py4JError, OSError):
                    self._count_retries(tag)

    def _run_tagged(self, action: Callable[[], T], tag: str) -> T:
        from py4j.protocol import Py4JError

        self.context.addJobTag(tag)
        try:
            return action()
        finally:
            with suppress(Py4JError, OSError):  # what stopped the action is told, not what came of it
                self.context.removeJobTag(tag)

    def _run_with_steps(self, action: Callable[[], T], tag: str, steps: Steps, total: int) -> T:
        from py4j.protocol import Py4JError
        from pyspark import InheritableThread

        results: list[T] = []
        raised: list[BaseException] = []

        def work() -> None:
            try:
                results.append(self._run_tagged(action, tag))
            except BaseException as error:
                raised.append(error)

        thread = InheritableThread(target=work, daemon=True)
        thread.start()
        try:
            last = -1
            while thread.is_alive():
                thread.join(PAUSE_SECONDS)
                done = min(self._count_done(tag, total), total - 1)
                if thread.is_alive() and done > last:
                    steps(done, total)
                    last = done
        except BaseException:
            with suppress(Py4JError, OSError):  # a signal may have ended Spark's process too
                while thread.is_alive():  # a job may be about to start
                    self.context.cancelJobsWithTag(tag)
                    thread.join(PAUSE_SECONDS)
            raise
        if raised:
            raise raised[0]
        steps(total, total)
        return results[0]

    def _count_done(self, tag: str, total: int) -> int:
        spark = self.context._jsc.sc()
        tasks = finished = 0
        for job in spark.statusTracker().getJobIdsForTag(tag):
            data = spark.statusStore().job(job)
            tasks += data.numTasks()
            finished += data.numCompletedTasks() + data.numSkippedTasks()
        return total * finished // tasks if tasks else 0

    def _count_retries(self, tag: str) -> None:
        spark = self.context._jsc.sc()
        if spark.isStopped():
            return
        spark.listenerBus().waitUntilEmpty(SETTLE_MILLISECONDS)
        store = spark.statusStore()
        failed = 0
        for job in spark.statusTracker().getJobIdsForTag(tag):
            stages = store.job(job).stageIds()
            for stage in [stages.apply(i) for i in range(stages.size())]:
                for data in self._list_attempts(store, stage):
                    place = (stage, data.attemptId())
                    if place not in self.written:
                        self.written[place] = data.shuffleWriteBytes()
                        failed += data.numFailedTasks() + data.numKilledTasks()
        if failed:
            self.retried += failed
            LOG.info(
                "Spark ran %d tasks again after they failed or were lost; their output is the same", failed
            )

    def _list_attempts(self, store: Any, stage: int) -> Iterator[Any]:
        """Yield every attempt of a stage; Spark starts another one when an executor is lost with its shuffled data."""
        last = store.lastStageAttempt(stage)
        empty, none = self.context._jvm.java.util.ArrayList(), self._no_quantiles()
        for attempt in range(last.attemptId()):
            yield store.stageAttempt(stage, attempt, False, empty, False, none)._1()
        yield last

    def _no_quantiles(self) -> Any:
        return self.context._gateway.new_array(self.context._jvm.double, 0)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate an error of Spark inside the block to one of Stirred, which shows no value."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise translate_error(error) from None


def translate_error(error: BaseException) -> StirredError:
    """Translate an error of Spark: one of Stirred is restored as it was raised in a task, others are named by class.

    >>> print(translate_error(ValueError('x RuntimeError: stirred-error {"class": "InputError", "what": "no column a"}')))
    no column a
    """
    ours = re.search(re.escape(ERROR_PREFIX) + r"(\{.*\})", str(error))
    if ours:
        words = json.loads(ours[1])
        kind = getattr(errors, words["class"], StirredError)
        made: StirredError = kind(words["what"], why=words.get("why", ""), fix=words.get("fix", ""))
        return made
    name = type(error).__name__
    condition = getattr(error, "getCondition", lambda: None)()
    return ClusterError(
        "Spark stopped the job", why=f"{name} ({condition})" if condition else name, fix=RUN_AGAIN_FIX
    )

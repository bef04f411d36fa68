"""How far the jobs of a session are: Spark's own status, in a line."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import SparkStageInfo
from pyspark.sql import SparkSession


@dataclass(frozen=True)
class JobProgress:
    """How far the jobs that run just now are.

    Attributes
    ----------
    stages_planned, stages_done
        Number of their stages, and of those that are done.
    tasks_planned, tasks_done
        Number of tasks of the stages that Spark has begun, and of those that are done.
    """

    stages_planned: int
    stages_done: int
    tasks_planned: int
    tasks_done: int

    def __str__(self) -> str:
        if not self.tasks_planned:
            return ""
        current = min(self.stages_done + 1, self.stages_planned)
        return f"stage {current} of {self.stages_planned}, {self.tasks_done:,} of {self.tasks_planned:,} tasks"


def job_progress(session: SparkSession) -> JobProgress | None:
    """Return how far the jobs of a session are; None where none runs, or on Spark Connect, which does not tell.

    It is asked from any thread, while others wait for the jobs.
    """
    context = getattr(session, "_sc", None)
    if context is None or context._jsc is None:
        return None
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    numbers = sorted({stage for job in jobs if job is not None for stage in job.stageIds})
    if not numbers:
        return None
    infos = not_skipped([info for info in map(tracker.getStageInfo, numbers) if info is not None])
    done = sum(1 for info in infos if info.numTasks and info.numCompletedTasks >= info.numTasks)
    tasks, tasks_done = sum(info.numTasks for info in infos), sum(info.numCompletedTasks for info in infos)
    return JobProgress(len(infos), done, tasks, tasks_done)


def not_skipped(infos: list[SparkStageInfo]) -> list[SparkStageInfo]:
    """Return the stages but those that Spark skips, since it has their output: nothing of them has run."""
    ran = [info.numActiveTasks + info.numCompletedTasks > 0 for info in infos]
    last = max((i for i, has_run in enumerate(ran) if has_run), default=0)
    return [info for i, info in enumerate(infos) if ran[i] or i >= last]

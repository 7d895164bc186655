"""Where Django looks for an app's models; they live beside the store that writes them."""

from shiftboss.queue.models import Attempt, Event, Finished, Job, Worker

__all__ = ["Attempt", "Event", "Finished", "Job", "Worker"]

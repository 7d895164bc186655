"""Where Django looks for an app's models; they live beside the store that writes them."""

from shiftboss.queue.models import Attempt, Audit, Event, Finished, Job, Purge, Queue, Token, Waiter, Worker

__all__ = ["Attempt", "Audit", "Event", "Finished", "Job", "Purge", "Queue", "Token", "Waiter", "Worker"]

"""All alerts, by subject."""

from deploy.monitoring.alert import Chapter
from deploy.monitoring.alerts.gpus import GPUS
from deploy.monitoring.alerts.hosts import HOSTS
from deploy.monitoring.alerts.services import SERVICES
from deploy.monitoring.alerts.slurm import SLURM

CHAPTERS: tuple[Chapter, ...] = (HOSTS, SLURM, GPUS, SERVICES)

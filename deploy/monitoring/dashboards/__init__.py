"""All dashboards."""

from deploy.monitoring.dashboards.cluster import CLUSTER
from deploy.monitoring.dashboards.deployment import DEPLOYMENT
from deploy.monitoring.dashboards.gpus import GPUS
from deploy.monitoring.dashboards.jobs import JOBS
from deploy.monitoring.dashboards.nodes import NODES
from deploy.monitoring.dashboards.queue import QUEUE
from deploy.monitoring.dashboards.scheduler import SCHEDULER
from deploy.monitoring.dashboards.storage import STORAGE
from deploy.monitoring.dashboards.users import USERS
from deploy.monitoring.panel import Dashboard

DASHBOARDS: tuple[Dashboard, ...] = (
    CLUSTER,
    NODES,
    GPUS,
    QUEUE,
    SCHEDULER,
    USERS,
    JOBS,
    STORAGE,
    DEPLOYMENT,
)

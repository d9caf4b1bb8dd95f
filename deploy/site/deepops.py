"""What became of DeepOps's variables and groups: a site that comes from there is told line by line."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from deploy.errors import Finding, Severity
from deploy.site.inventory import Site
from deploy.site.origin import shown

_EMPTY: tuple[object, ...] = (None, "")
_OFF: tuple[object, ...] = (*_EMPTY, False, "no", "off", "false", [], {})


@dataclass(frozen=True)
class Renamed:
    """A variable with a counterpart here: what it is now, and what to write, if anything.

    ``same`` are values that mean what holds here anyway.
    """

    now: str
    write: str = ""
    same: tuple[object, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Variables of something that is not done here: what happens instead.

    To ignore them is harmless where nobody would miss anything, and where they turn something off.
    """

    names: str
    instead: str
    harmless: bool = False


RENAMED = {
    "chrony_config_server": Renamed("time_sync_servers", "time_sync_servers: [ADDRESS, …]"),
    "enroot_cache_path": Renamed("enroot_cache_directory", "enroot_cache_directory: /DIRECTORY"),
    "enroot_config": Renamed("enroot_settings", "enroot_settings: {ENROOT_NAME: VALUE}"),
    "enroot_data_path": Renamed("enroot_data_directory", "enroot_data_directory: /DIRECTORY"),
    "enroot_deb_packages": Renamed("enroot_package_files", "enroot_package_files: [{url: …, sha256: …}]"),
    "enroot_runtime_path": Renamed("enroot_runtime_directory", "enroot_runtime_directory: /DIRECTORY"),
    "enroot_version": Renamed("enroot_package_files", "enroot_package_files: [{url: …, sha256: …}]"),
    "hosts_add_ansible_managed_hosts_groups": Renamed(
        "always the whole cluster: every host has all names in /etc/hosts", same=(["slurm-cluster"],)
    ),
    "http_proxy": Renamed("proxy_http", "proxy_http: http://HOST:PORT"),
    "https_proxy": Renamed("proxy_https", "proxy_https: http://HOST:PORT"),
    "no_proxy": Renamed("proxy_no_proxy", "proxy_no_proxy: [NAME, …]; the cluster itself is always in it"),
    "slurm_allow_ssh_user": Renamed("job_ssh_admin_users", "job_ssh_admin_users: [NAME]"),
    "nfs_exports": Renamed(
        "nfs_server_exports, to the cluster's addresses", "nfs_server_exports: [{path: /home}]", same=([],)
    ),
    "nfs_mounts": Renamed(
        "nfs_client_mounts, by default all that [slurm-nfs] exports",
        "nfs_client_mounts: [{path: /home, server: ADDRESS}]",
        same=([],),
    ),
    "slurm_autodetect_nvml": Renamed(
        "slurmctld_gres_autodetect", "slurmctld_gres_autodetect: nvml", (True, "yes")
    ),
    "slurm_cgroup_conf_template": Renamed("slurmctld_cgroup_parameters", "slurmctld_cgroup_parameters: {…}"),
    "slurm_cluster_install_openmpi": Renamed(
        "openmpi_packages: Open MPI is the distribution's", "openmpi_packages: [openmpi-bin]", (False, "no")
    ),
    "slurm_cluster_name": Renamed("slurmctld_cluster_name", "slurmctld_cluster_name: NAME"),
    "slurm_conf_template": Renamed(
        "slurmctld_parameters and slurmctld_partitions", "slurmctld_parameters: {NAME: VALUE}"
    ),
    "slurm_configure_etc_hosts": Renamed("always on", same=(True, "yes")),
    "slurm_db_password": Renamed(
        "slurmdbd_database_password, which deploy generates and sets in the database"
    ),
    "slurm_db_username": Renamed("slurmdbd_database_user", "slurmdbd_database_user: NAME"),
    "slurm_dbd_conf_template": Renamed("slurmdbd_parameters", "slurmdbd_parameters: {NAME: VALUE}"),
    "slurm_contain_ssh": Renamed(
        "always on: a session on a compute node is part of a job", same=(True, "yes")
    ),
    "cuda_version": Renamed("cuda_toolkit_versions", 'cuda_toolkit_versions: ["12.4"]'),
    "install_dcgm": Renamed("dcgm_version", "dcgm_version: VERSION", (False, "no")),
    "slurm_cluster_install_cuda": Renamed(
        "cuda_toolkit_versions", 'cuda_toolkit_versions: ["12.4"]', (False, "no")
    ),
    "slurm_cluster_install_singularity": Renamed(
        "apptainer_version: Singularity is called Apptainer", 'apptainer_version: "1.5.3"', (False, "no")
    ),
    "slurm_cluster_install_nvidia_driver": Renamed(
        "nvidia_driver_source", "nvidia_driver_source: auto, or none", (True, "yes")
    ),
    "slurm_default_job_timelimit": Renamed(
        "default_time of a partition",
        'slurmctld_partitions: [{name: batch, default: true, default_time: "1:00:00"}]',
    ),
    "slurm_enable_pam_slurm_adopt": Renamed(
        "job_ssh_admits", "job_ssh_admits: users_with_jobs, or everyone", (True, "yes")
    ),
    "slurm_enable_ha": Renamed(
        "the number of hosts in [slurm-master]",
        "two hosts below [slurm-master], a slurmctld_state_save_location that both mount, [slurm-database]",
        (False, "no"),
    ),
    "slurm_install_enroot": Renamed(
        "the group slurm-container", "[slurm-container:children] with slurm-node below it", (False, "no")
    ),
    "slurm_install_pyxis": Renamed(
        "the group slurm-container", "[slurm-container:children] with slurm-node below it", (False, "no")
    ),
    "slurm_pyxis_tarball_url": Renamed("pyxis_source", "pyxis_source: {version: …, url: …, sha256: …}"),
    "slurm_pyxis_version": Renamed("pyxis_source", "pyxis_source: {version: …, url: …, sha256: …}"),
    "slurm_gres_conf_template": Renamed(
        "slurmd_hardware", "slurmd_hardware: {gpus: [{type: a100, count: 8}]}"
    ),
    "slurm_ha_state_save_location": Renamed(
        "slurmctld_state_save_location", "slurmctld_state_save_location: /DIRECTORY"
    ),
    "slurm_health_check_program": Renamed(
        "slurmctld_health_check_program; deploy has one of its own, the role node_health",
        "slurmctld_health_check_program: /PATH",
    ),
    "slurm_install_lmod": Renamed(
        "always on: module files lie in /opt/modulefiles and environment_modules_shared", same=(True, "yes")
    ),
    "slurm_install_nhc": Renamed("always on: the role node_health checks nodes", same=(True, "yes")),
    "slurm_login_on_compute": Renamed(
        "membership in two groups", "the node below [slurm-login], too", (False, "no")
    ),
    "slurm_manage_gpus": Renamed("always on: GPUs are discovered", same=(True, "yes")),
    "slurm_max_job_timelimit": Renamed(
        "max_time of a partition",
        'slurmctld_partitions: [{name: batch, default: true, max_time: "1-00:00:00"}]',
        ("INFINITE", "UNLIMITED"),
    ),
    "slurm_oversubscribe": Renamed(
        "sharing of a partition",
        "slurmctld_partitions: [{name: batch, default: true, sharing: shared}]",
        ("NO",),
    ),
    "slurm_restrict_node_access": Renamed(
        "job_ssh_admits", "job_ssh_admits: users_with_jobs, or everyone", (True, "yes")
    ),
    "slurm_return_to_service": Renamed("slurmctld_return_to_service", "slurmctld_return_to_service: 2"),
    "slurm_user_uid": Renamed("users_slurm_uid", "users_slurm_uid: NUMBER, and users_slurm_gid: NUMBER"),
    "slurm_username": Renamed("always slurm", same=("slurm",)),
    "slurm_version": Renamed("slurm_packages_version; slurm_packages_source says from where"),
    "users": Renamed(
        "users_accounts, without passwords", "users_accounts: [{name: NAME, uid: NUMBER, ssh_keys: [KEY]}]"
    ),
}

MISSING = (
    Missing(
        "nfs_server_group nfs_client_group slurm_enable_nfs_*",
        "[slurm-nfs] serves and [slurm-nfs-client] mounts; leave them empty for no NFS",
        harmless=True,
    ),
    Missing(
        "autofs_* nis_* kerberos_client_* nfs_idmapd_domain",
        "directory services are not set up: configure the hosts by other means",
    ),
    Missing("resize_run_partition", "/run is left as it is", harmless=True),
    Missing(
        "enroot_environ_config_files enroot_environ_config_files_dgx enroot_mount_config_files"
        " enroot_mount_config_files_dgx",
        "files in /etc/enroot are left as they are: put yours there by other means",
    ),
    Missing(
        "nhc_*", "LBNL's NHC is not used: checks of nodes are data of the role node_health", harmless=True
    ),
    Missing(
        "slurm_enable_prolog_epilog prolog_fileglob epilog_fileglob",
        "write what runs around jobs into job_programs_prolog and job_programs_epilog, program by program",
    ),
    Missing(
        "slurm_enable_monitoring slurm_monitoring_group",
        "a host in [slurm-metric] watches the cluster; leave the group empty for no monitoring",
        harmless=True,
    ),
    Missing(
        "prometheus_container prometheus_svc_* prometheus_state prometheus_*_dir"
        " grafana_container grafana_svc_* grafana_state grafana_*_dir"
        " alertmanager_container alertmanager_svc_* alertmanager_state alertmanager_*_dir",
        "the monitoring runs without containers: see docs/monitoring.md",
        harmless=True,
    ),
    Missing(
        "slurm_enable_rsyslog_* rsyslog_*", "a host below [slurm-log] keeps the logs of all: see log_server_*"
    ),
    Missing(
        "slurm_enable_container_registry standalone_container_registry_*",
        "a host below [slurm-registry] keeps images: see slurm_registry_*",
    ),
    Missing(
        "nvidia_driver_skip_reboot nvidia_driver_force_install nvidia_driver_package_state "
        "nvidia_driver_persistence_mode_on"
        " nvidia_driver_rhel_* nvidia_driver_ubuntu_*",
        "the driver is installed by nvidia_driver_source and nvidia_driver_branch; a node reboots only "
        "when it has to",
        harmless=True,
    ),
    Missing("gpu_clock_* allow_user_set_gpu_clocks", "GPU clocks are left as they are"),
    Missing("mig_manager_*", "MIG is left as it is", harmless=True),
    Missing(
        "sm_* spack_*",
        "EasyBuild and Spack have other variables: see software_tree_directory and "
        "software_tree_spack_version; for module files of your own environment_modules_shared",
    ),
    Missing("slurm_install_hpcsdk hpcsdk_*", "the HPC SDK is not installed"),
    Missing(
        "openmpi_version openmpi_src_* openmpi_install_* openmpi_build_* openmpi_config* openmpi_force_*"
        " openmpi_autodetect_* openmpi_workflow_*",
        "nothing is built: Open MPI is the distribution's, see openmpi_packages",
        harmless=True,
    ),
    Missing("proxy_env", "see proxy_http, proxy_https and proxy_no_proxy", harmless=True),
    Missing("dns_config_*", "name servers are left as they are"),
    Missing(
        "software_extra_packages software_remove_packages",
        "see user_environment_extra_packages; no package is removed",
    ),
    Missing("rc_local_contents", "/etc/rc.local is left as it is"),
    Missing(
        "docker_* containerd_* crio_* nerdctl_*", "no container runtime is set up for users", harmless=True
    ),
    Missing(
        "chrony_*", "chrony always runs, and the time zone is left as it is; see time_sync_*", harmless=True
    ),
    Missing(
        "deepops_set_hostname", "host names are left as they are; they must be the inventory's", harmless=True
    ),
    Missing("deepops_*", "DeepOps's own directories and settings are not used", harmless=True),
    Missing(
        "slurm_install_prefix slurm_build_* slurm_src_url slurm_config* slurm_force_rebuild slurm_include_*"
        " slurm_workflow_build slurm_cuda_prefix slurm_sysconf_dir slurmctl_config_dir pmix_* hwloc_*",
        "nothing is built: Slurm comes as packages",
        harmless=True,
    ),
    Missing(
        "slurm_password slurm_user_home slurm_conf_symlink slurm_fix_shm slurm_clear_old_prolog_epilog"
        " slurm_node_reboot_timeout slurm_reboot_program slurm_resume_timeout is_controller is_compute",
        "nothing here needs it",
        harmless=True,
    ),
    Missing(
        "ssh_client_hardening ssh_use_pam ssh_max_auth_retries sftp_enabled sftp_chroot",
        "see ssh_server_*; what is not there is left as it is",
        harmless=True,
    ),
    Missing("collectd_* with_dcgm_collectd", "collectd is not set up", harmless=True),
    Missing(
        "epel_package epel_key_url", "it is for another distribution than those supported", harmless=True
    ),
    Missing("maas_*", "machines are not provisioned", harmless=True),
    Missing("ngc_ready_*", "no NGC-Ready tests are run", harmless=True),
    Missing(
        "kube_* kubeadm_* kubectl_* kubeconfig_* kubelet_* k8s_* helm_* tiller_* container_manager dns_mode"
        " dns_late dashboard_* podsecuritypolicy_enabled gpu_operator_* image_command_tool artifacts_dir"
        " trident_* tridentctl_* copy_tridentctl_* create_backends create_StorageClasses backends_to_create"
        " storageClasses_to_create enable_volume_snapshots volume_snapshot_* snapshot_controller_*",
        "Kubernetes is not set up",
        harmless=True,
    ),
)

_GROUPS = (
    (
        "kube_control_plane kube-master kube_node kube-node etcd k8s_cluster k8s-cluster",
        "Kubernetes is not set up",
    ),
)


def deepops_finding(where: str, name: str, value: object) -> Finding | None:
    """What to do about a variable of DeepOps; None for any other."""
    if renamed := RENAMED.get(name):
        return Finding(
            where,
            "deepops-renamed",
            f"{name} is a variable of DeepOps; {name} is now {renamed.now}",
            f"write instead: {renamed.write}" if renamed.write else "remove the line",
            Severity.WARNING if value in (*renamed.same, *_EMPTY) else Severity.ERROR,
        )
    for missing in MISSING:
        if any(fnmatchcase(name, pattern) for pattern in missing.names.split()):
            return Finding(
                where,
                "deepops-not-here",
                f"{name} is a variable of DeepOps; {missing.instead}",
                "remove the line: nothing reads it",
                Severity.WARNING if missing.harmless or value in _OFF else Severity.ERROR,
            )
    return None


def check_deepops_groups(site: Site) -> Iterator[Finding]:
    """Groups of DeepOps that have hosts and mean nothing here: said, because the rest of them is used."""
    for names, instead in _GROUPS:
        used = [name for name in names.split() if site.groups.get(name)]
        if used:
            yield Finding(
                shown(str(site.inventory)),
                "deepops-group",
                f"{', '.join(f'[{name}]' for name in used)}: {instead}",
                "leave it, or remove it: it makes no difference",
                Severity.WARNING,
            )

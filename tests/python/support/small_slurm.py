"""A Slurm of some hosts in network namespaces: slurmctld on the head, a slurmd on each host.

It has no munge (auth/none): all of it is one user's, and nobody else reaches the namespaces.
"""

import os
import shutil
import subprocess
import time

import hocket_command

DAEMONS = {name: shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
           for name in ("slurmctld", "slurmd", "sbatch", "srun", "scontrol")}


def why_not():
    missing = [name for name, path in DAEMONS.items() if path is None]
    return f"needs {', '.join(missing)} (tools/setup.sh --daemons)" if missing else ""


class SmallSlurm:
    """A resource. `hosts` are ssh_hosts.SshHosts."""

    def __init__(self, hosts, folder):
        self.hosts = hosts
        self.folder = folder
        self.configuration = folder / "slurm.conf"
        nodes = "".join(f"NodeName={name} NodeAddr={hosts.address(name)} CPUs=2 RealMemory=500\n"
                        for name in hosts.names)
        self.configuration.write_text(
            f"ClusterName=small\nSlurmctldHost={os.uname().nodename}({hosts.address('')})\n"
            "AuthType=auth/none\nCredType=cred/none\nSlurmUser=root\nSlurmdUser=root\nMpiDefault=none\n"
            f"StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool-%n\n"
            f"SlurmctldPidFile={folder}/ctld.pid\nSlurmdPidFile={folder}/slurmd-%n.pid\n"
            f"SlurmctldLogFile={folder}/ctld.log\nSlurmdLogFile={folder}/slurmd-%n.log\n"
            "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\nKillWait=2\n"
            f"SlurmdParameters=config_overrides\n{nodes}PartitionName=all Nodes=ALL Default=YES State=UP\n")
        # No control group is used. Without this line slurmd looks for a mounted hierarchy, and the
        # namespaces have none.
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (folder / "state").mkdir()
        self.daemons = [self.start("", DAEMONS["slurmctld"], "-D", "-i", "-f", self.configuration)]
        for name in hosts.names:
            (folder / f"spool-{name}").mkdir()
            self.daemons.append(self.start(name, DAEMONS["slurmd"], "-D", "-N", name, "-f", self.configuration))
        hosts.servers.extend(self.daemons)

    def start(self, name, *words, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options}
        return subprocess.Popen(self.hosts.inside(name, *words), text=True, env=self.environment(), **options)

    def environment(self, **more):
        return {**os.environ, "SLURM_CONF": str(self.configuration), **more}

    def run(self, *words, **more):
        """Runs a command of Slurm on the head; returns its exit code and output."""
        done = subprocess.run(self.hosts.inside("", *words), env=self.environment(**more), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=hocket_command.WATCHDOG)
        return done.returncode, done.stdout

    def await_idle(self):
        until = time.monotonic() + 30
        while True:
            _, said = self.run(shutil.which("sinfo"), "-h", "-o", "%D %t")
            if said.split() == [str(len(self.hosts.names)), "idle"]:
                return
            assert time.monotonic() < until, (said, (self.folder / "ctld.log").read_text()[-3000:])
            time.sleep(0.2)

    def close(self):
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait(timeout=20)

"""Answers for each inventory path of stdin what Ansible makes of it, as one line of JSON."""
import json
import os
import sys

# As since ansible-core 2.19, whichever is installed: files *.ini of a folder are read.
os.environ["ANSIBLE_INVENTORY_IGNORE"] = ".pyc,.pyo,.swp,.bak,~,.rpm,.md,.txt,.rst,.orig,.cfg,.retry"

from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.utils.display import Display
from ansible.vars.manager import VariableManager

Display.warning = lambda *_args, **_kwargs: None
Display.error = lambda *_args, **_kwargs: None


def last(variables, *names):
    for name in reversed(names):
        if variables.get(name) is not None:
            return str(variables[name])
    return ""


def answer(path):
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[path])
    if not inventory._inventory.processed_sources:
        return {"error": "nothing could be read"}
    variables = VariableManager(loader=loader, inventory=inventory)
    hosts = {}
    for host in inventory.get_hosts():
        v = variables.get_vars(host=host, include_hostvars=False)
        hosts[host.name] = {
            "address": last(v, "ansible_host", "ansible_ssh_host"),
            "port": last(v, "ansible_port", "ansible_ssh_port"),
            "user": last(v, "ansible_user", "ansible_ssh_user"),
            "key": last(v, "ansible_private_key_file", "ansible_ssh_private_key_file"),
            "connection": last(v, "ansible_connection"),
            "args": [last(v, "ansible_ssh_%s" % name) for name in ("args", "common_args", "extra_args")],
        }
    groups = {name: sorted(h.name for h in group.get_hosts()) for name, group in inventory.groups.items()}
    return {"groups": groups, "hosts": hosts}


for line in sys.stdin:
    try:
        print(json.dumps(answer(json.loads(line))))
    except Exception as error:
        print(json.dumps({"error": str(error) or "error"}))

"""Answers for each line of stdin what ClusterShell makes of it, as one line of JSON."""
import json
import sys

from ClusterShell.NodeSet import NodeSet, RESOLVER_NOGROUP

for line in sys.stdin:
    try:
        question = json.loads(line)
        if isinstance(question, str):
            question = {"text": question}
        nodes = NodeSet(question["text"], autostep=question.get("autostep"), resolver=RESOLVER_NOGROUP)
        answer = {"names": [str(n) for n in nodes], "folded": str(nodes)}
    except Exception as error:
        answer = {"error": str(error) or "error"}
    print(json.dumps(answer))

"""An SFTP server by asyncssh: PORT HOST_KEY AUTHORIZED_KEYS HOME WINDOW"""

import asyncio
import os
import sys

import asyncssh

port, host_key, authorized, home, window = sys.argv[1:]


async def serve():
    await asyncssh.listen(
        "127.0.0.1", int(port), server_host_keys=[host_key], authorized_client_keys=authorized, sftp_factory=True, window=int(window)
    )
    await asyncio.Event().wait()


os.chdir(home)
asyncio.run(serve())

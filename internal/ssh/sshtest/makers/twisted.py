"""An SFTP server by Twisted Conch: PORT HOST_KEY AUTHORIZED_KEYS HOME"""

import os
import pwd
import sys

from twisted.conch.checkers import InMemorySSHKeyDB, SSHPublicKeyChecker
from twisted.conch.ssh import factory, keys
from twisted.conch.unix import UnixConchUser
from twisted.cred.portal import IRealm, Portal
from twisted.internet import reactor
from twisted.python.filepath import FilePath
from zope.interface import implementer

port, host_key, authorized, home = sys.argv[1:]
user = pwd.getpwuid(os.getuid()).pw_name


class Account(UnixConchUser):
    """The account that runs this program, with another home."""

    def getHomeDir(self):
        return FilePath(home)

    def logout(self):
        pass

    def _runAsUser(self, call, *args, **kw):
        result = None
        for call, *rest in [(call, args, kw)] if callable(call) else call:
            result = call(*(rest[0] if rest else ()), **(rest[1] if len(rest) > 1 else {}))
        return result


@implementer(IRealm)
class Realm:
    def requestAvatar(self, avatarId, mind, *interfaces):
        account = Account(user)
        del account.channelLookup[b"direct-tcpip"]
        return interfaces[0], account, account.logout


server = factory.SSHFactory()
key = keys.Key.fromFile(host_key)
server.privateKeys, server.publicKeys = {key.sshType(): key}, {key.sshType(): key.public()}
allowed = InMemorySSHKeyDB({user.encode(): [keys.Key.fromFile(authorized)]})
server.portal = Portal(Realm(), [SSHPublicKeyChecker(allowed)])
reactor.listenTCP(int(port), server, interface="127.0.0.1")
reactor.run()

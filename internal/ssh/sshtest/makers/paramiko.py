"""An SFTP server by paramiko: PORT HOST_KEY AUTHORIZED_KEYS HOME"""

import os
import socket
import sys
import threading

import paramiko
from paramiko import SFTPAttributes, SFTPHandle, SFTPServer, SFTPServerInterface

port, host_key, authorized, home = sys.argv[1:]


class Account(paramiko.ServerInterface):
    """Lets the one key in, and has no session but that of SFTP."""

    def check_auth_publickey(self, username, key):
        allowed = open(authorized).read().split()[1]
        return paramiko.AUTH_SUCCESSFUL if key.get_base64() == allowed else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username):
        return "publickey"

    def check_channel_request(self, kind, chanid):
        return paramiko.OPEN_SUCCEEDED


def answered(call):
    """Makes an answer of what a call of the system raises."""

    def wrapped(*args):
        try:
            done = call(*args)
        except OSError as err:
            return SFTPServer.convert_errno(err.errno)
        return paramiko.SFTP_OK if done is None else done

    return wrapped


def attributes(name, stat):
    return SFTPAttributes.from_stat(stat, name)


class File(SFTPHandle):
    def stat(self):
        return SFTPAttributes.from_stat(os.fstat(self.writefile.fileno()))

    def chattr(self, attr):
        SFTPServer.set_file_attr(self.filename, attr)
        return paramiko.SFTP_OK


class Files(SFTPServerInterface):
    """The files of this machine."""

    def canonicalize(self, path):
        return os.path.realpath(path)

    @answered
    def list_folder(self, path):
        return [attributes(name, os.lstat(os.path.join(path, name))) for name in os.listdir(path)]

    stat = answered(lambda self, path: attributes(path, os.stat(path)))
    lstat = answered(lambda self, path: attributes(path, os.lstat(path)))
    remove = answered(lambda self, path: os.remove(path))
    rmdir = answered(lambda self, path: os.rmdir(path))
    posix_rename = answered(lambda self, old, new: os.replace(old, new))
    symlink = answered(lambda self, target, path: os.symlink(target, path))
    readlink = answered(lambda self, path: os.readlink(path))
    chattr = answered(lambda self, path, attr: SFTPServer.set_file_attr(path, attr))

    @answered
    def rename(self, old, new):
        if os.path.lexists(new):
            return paramiko.SFTP_FAILURE
        os.rename(old, new)

    @answered
    def mkdir(self, path, attr):
        os.mkdir(path)
        SFTPServer.set_file_attr(path, attr)

    @answered
    def open(self, path, flags, attr):
        descriptor = os.open(path, flags, attr.st_mode if attr.st_mode is not None else 0o666)
        mode = "r+b" if flags & os.O_RDWR else "wb" if flags & os.O_WRONLY else "rb"
        handle = File(flags)
        handle.filename = path
        handle.readfile = handle.writefile = os.fdopen(descriptor, mode, buffering=0)
        return handle


def serve(connection):
    transport = paramiko.Transport(connection)
    transport.add_server_key(paramiko.Ed25519Key.from_private_key_file(host_key))
    transport.set_subsystem_handler("sftp", SFTPServer, Files)
    try:
        transport.start_server(server=Account())
        transport.join()
    except (paramiko.SSHException, EOFError):
        pass


os.chdir(home)
listener = socket.create_server(("127.0.0.1", int(port)))
while True:
    accepted, _ = listener.accept()
    threading.Thread(target=serve, args=(accepted,), daemon=True).start()

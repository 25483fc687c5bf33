"""What the server allows: its address, its token, and the limits of requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from pprop._errors import InputError

HOST, PORT = "127.0.0.1", 8642
RATE = 1000.0

MOST_IDS = 1000  # of one request for predictions
MOST_EDITS = 1000  # of one batch of live edits
MOST_CHANGES = 100  # edges of one what-if
MOST_STEPS = 200
MOST_NODES = 200  # of one neighbourhood
MOST_CONTRIBUTORS = 1000
MOST_FOUND = 1000  # of one search


@final
@dataclass(frozen=True)
class ServerLimits:
    """The address of a server and what it allows.

    Parameters
    ----------
    host, port
        The address to listen on.
    token
        What requests must show; None: nothing, which only a loopback address allows.
    hosts
        Other names under which the server is reached, for instance through a proxy.
    rate
        Requests a second and client, on average; twice as many may come at once.
    body
        Bytes of a request's body.
    seconds
        For a request to arrive, and for its answer to be computed.

    Examples
    --------
    >>> ServerLimits(host="0.0.0.0")
    Traceback (most recent call last):
        ...
    pprop._errors.InputError: A server at '0.0.0.0', which other machines reach, needs a token: add --token TOKEN, or listen on 127.0.0.1.
    >>> ServerLimits().accepts("localhost:8642"), ServerLimits().accepts("attacker.example:8642")
    (True, False)
    """

    host: str = HOST
    port: int = PORT
    token: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = ()
    rate: float = RATE
    body: int = 2**21
    seconds: float = 30.0

    def __post_init__(self) -> None:
        if self.token is not None and not self.token.strip():
            raise InputError("A token must not be empty.")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise InputError("A token must be printable ASCII characters without spaces, as a header can hold them.")
        if self.token is None and not is_loopback(self.host):
            raise InputError(
                f"A server at {self.host!r}, which other machines reach, needs a token: add --token TOKEN, or listen "
                f"on {HOST}."
            )
        if not 0 <= self.port < 2**16:
            raise InputError(f"A port is a number from 0 to 65535. Got {self.port} instead.")
        if not self.rate > 0:
            raise InputError(f"The rate must be a number above 0. Got {self.rate} instead.")

    def accepts(self, host: str) -> bool:
        """Whether the Host header of a request names this server.

        A name that anyone may register is not accepted, because it may point here: a page of another site would then
        talk to this server as its own. An address cannot be pointed elsewhere.
        """
        import ipaddress
        import socket

        name = host_name(host)
        if name in {"localhost", self.host.lower(), *(one.lower() for one in self.hosts)}:
            return True
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return not is_loopback(self.host) and name in {socket.gethostname().lower(), socket.getfqdn().lower()}
        return address.is_loopback or not is_loopback(self.host)


def host_name(host: str) -> str:
    """Return a Host header without its port.

    >>> host_name("Localhost:80"), host_name("[::1]:80"), host_name("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() else host.strip().lower()


def is_loopback(host: str) -> bool:
    """Whether an address is reached by this machine alone.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.7")]
    [True, True, True, False, False]
    """
    import ipaddress  # here: the command's help does without

    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False

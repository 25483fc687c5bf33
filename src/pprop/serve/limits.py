"""What the server allows: its address, its token, and the limits of requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from pprop._errors import InputError, PpropError, Remedy, together

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
    pprop._errors.InputError: A server at '0.0.0.0', which other machines reach, needs a token; at 127.0.0.1 it needs none. Pass token=...
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
        errors: list[PpropError] = []

        def refuse(parameter: str, expected: str, found: str) -> None:
            errors.append(InputError(parameter=parameter, function="ServerLimits", expected=expected, found=found))

        token = self.token
        if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
            what = "an empty text" if not token.strip() else "other characters"  # never the token itself
            refuse("token", "printable ASCII characters without spaces, as a header can hold them", what)
        if token is None and not is_loopback(self.host):
            text = f"A server at {self.host!r}, which other machines reach, needs a token; at {HOST} it needs none."
            errors.append(InputError(text, remedies=[Remedy(settings={"token": ...})]))
        if not 0 <= self.port < 2**16:
            refuse("port", "an integer from 0 to 65535", str(self.port))
        if not self.rate > 0:
            refuse("rate", "a number above 0", str(self.rate))
        if errors:
            raise together(errors)

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

"""How much one request, one client and all of them together may ask for."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit of the HTTP interface; what goes beyond one is answered with 413, 422, 429 or 503, never queued."""

    photo_bytes: int = 32 * MIB
    clip_bytes: int = 200 * MIB
    pixels: int = 64_000_000
    """Of one photo (phones make 50 million) or one frame of a clip, read from its header before anything is decoded."""
    seconds: float = 30.0
    """For sending a photo, waiting and being answered; a clip has ``clip_patience``."""
    clip_patience: float = 300.0
    clip_length: float = 120.0
    """Seconds of a clip that is captioned."""
    waiting: int = 64
    """Photos that may wait."""
    waiting_bytes: int = 256 * MIB
    """What they may take in memory together."""
    waiting_clips: int = 4
    per_client: int = 16
    """Places one address may hold at once; 0 means any number (behind a proxy all clients share one address)."""
    remember: int = 32
    """Photos whose regions stay in memory, so that the next question about the same photo need not look again."""
    connections: int = 256
    """Connections at once; more are closed as they come."""
    connections_per_client: int = 64
    """Of one address; 0 means any number."""
    idle_seconds: float = 20.0
    """For the line and headers of a request, and between two requests of a connection."""
    clip_decoding: float = 120.0
    """Seconds that decoding one clip may take."""
    batch: int = 8
    """Photos that are answered in one pass."""
    phrases: int = 100
    text: int = 1000
    """Characters of a phrase or a sentence."""

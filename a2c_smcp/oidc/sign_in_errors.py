"""What may go wrong while a computer or a person signs in. Messages name no token, no code and no secret.

SignInError              it cannot be signed in; the message says why
├── UnsafeAddressError   (`addresses`) the server sends us to an address that is not used
└── IssuerSilentError    the issuer does not answer, or fails; later it may succeed
"""

__all__ = ["IssuerSilentError", "SignInError"]


class SignInError(Exception):
    """Signing in failed. The message is for the person."""


class IssuerSilentError(SignInError):
    """The issuer did not answer, or failed. What was known of the sign-in is kept."""

/** A name as it is compared when case doesn't matter: `Web-1` and `web-1` are one, and so are both ways to write é. */
export function fold(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** A failure written for the requester: one sentence, and a hint with the next step. */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly hint: string | undefined;

  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

/** The message of anything thrown, on one line, for logs and wrapped errors. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replaceAll(/\s+/g, " ").slice(0, 500);
}

/** The error behind all others: `fetch` and proxies wrap what happened several times. */
export function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

/** What a proxy answered instead of opening a way: a status. undici has it in its words alone. */
export function statusOfProxy(error: unknown): number | undefined {
  const said = /Proxy (?:response|Authentication Required) \((\d{3})\)/i.exec(messageOf(error));
  return said === null ? undefined : Number(said[1]);
}

/** The code of a system error, such as ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

/** The message, and its hint where it has one. */
export const withHint = (error: unknown, between: string) =>
  messageOf(error) + (error instanceof UserError && error.hint ? between + error.hint : "");

/**
 * A failure written for the requester: one sentence, and a hint with the next step. `smallPrint`
 * names the rule behind it, for whoever wants to change that.
 */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly hint: string | undefined;
  readonly smallPrint: string | undefined;

  constructor(message: string, hint?: string, smallPrint?: string) {
    super(message);
    this.hint = hint;
    this.smallPrint = smallPrint;
  }
}

/** The message of anything thrown, on one line, for logs and wrapped errors. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replaceAll(/\s+/g, " ").slice(0, 500);
}

/** The innermost cause of an error. `fetch` and proxies wrap the original error several times. */
export function rootCause(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootCause(error.cause) : error;
}

/**
 * The HTTP status with which a proxy refused to open a tunnel. undici gives it only in the error's
 * message.
 */
export function statusOfProxy(error: unknown): number | undefined {
  const refusal = /Proxy (?:response|Authentication Required) \((\d{3})\)/i.exec(messageOf(error));
  return refusal === null ? undefined : Number(refusal[1]);
}

/** The code of a system error, such as ENOENT. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}

/** The message of an error, followed by its hint if it has one. */
export const withHint = (error: unknown, between: string) =>
  messageOf(error) + (error instanceof UserError && error.hint ? between + error.hint : "");

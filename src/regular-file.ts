import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** What Gatehouse keeps on a disk is for its own user alone, whatever the umask. */
export const privateFolder = { recursive: true, mode: 0o700 } as const;
export const privateFile = { mode: 0o600 } as const;

/** Neither a pipe without a writer nor a terminal keeps whoever opens it. */
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** A file that is none, or is larger than anything that it could rightly be; `code` as system errors have it. */
export class FileRefusedError extends Error {
  override readonly name = "FileRefusedError";
  readonly code: "EISDIR" | "NOT_A_FILE" | "TOO_LARGE";

  constructor(code: FileRefusedError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

function check(path: string, stats: Stats, most: number): void {
  if (stats.isDirectory()) throw new FileRefusedError("EISDIR", `${path} is a folder`);
  if (!stats.isFile()) throw new FileRefusedError("NOT_A_FILE", `${path} is not a regular file`);
  if (stats.size > most) throw tooLarge(path, most);
}

const tooLarge = (path: string, most: number) =>
  new FileRefusedError("TOO_LARGE", `${path} is larger than ${most.toLocaleString("en")} bytes`);

/** A file can grow after it was measured; Node.js reads no more than it then had. */
function checked(path: string, content: Buffer, most: number): Buffer {
  if (content.length > most) throw tooLarge(path, most);
  return content;
}

/**
 * A file that others can write or replace: a regular one of at most `most` bytes, opened without blocking. A pipe, a socket,
 * a device, a folder, or a larger file is refused. Throws FileRefusedError, or what `open` throws.
 */
export function readRegularSync(path: string, most: number): Buffer {
  const file = openSync(path, flags);
  try {
    check(path, fstatSync(file), most);
    return checked(path, readFileSync(file), most);
  } finally {
    closeSync(file);
  }
}

/** The same without holding up the process, for folders that may be far away. */
export async function readRegular(path: string, most: number): Promise<Buffer> {
  const file = await open(path, flags);
  try {
    check(path, await file.stat(), most);
    return checked(path, await file.readFile(), most);
  } finally {
    await file.close();
  }
}

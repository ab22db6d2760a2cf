import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";

/** Only Gatehouse's own user can read the files that it writes, whatever the umask is. */
export const privateFolder = { recursive: true, mode: 0o700 } as const;
export const privateFile = { mode: 0o600 } as const;

/**
 * With these flags, opening a pipe without a writer doesn't block, and opening a terminal doesn't
 * make it the controlling one.
 */
const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/**
 * The file is not a regular file, or is larger than it could legitimately be. `code` follows the
 * naming of system errors.
 */
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

/**
 * A file can grow between the size check and the read. Node.js reads no more than the file then
 * has, so the size is checked again here.
 */
function checked(path: string, content: Buffer, most: number): Buffer {
  if (content.length > most) throw tooLarge(path, most);
  return content;
}

/**
 * Reads a file that other users may write or replace. It must be a regular file of at most `most`
 * bytes and is opened without blocking. Throws FileRefusedError for a pipe, a socket, a device, a
 * folder, or a larger file, and otherwise whatever `open` throws.
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

/**
 * The lines of a regular file of any size, one by one, without their line feeds. Refuses what
 * `readRegularSync` refuses. Other line ends of Unicode don't end a line, because JSON has them in
 * its texts.
 */
export async function* readRegularLines(path: string): AsyncGenerator<string> {
  await using file = await open(path, flags);
  check(path, await file.stat(), Infinity);
  let rest = "";
  for await (const text of file.createReadStream({ encoding: "utf8" })) {
    const lines = `${rest}${String(text)}`.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  yield rest;
}

/**
 * Does the same as `readRegularSync` without blocking the process, for folders that may be on a
 * network.
 */
export async function readRegular(path: string, most: number): Promise<Buffer> {
  const file = await open(path, flags);
  try {
    check(path, await file.stat(), most);
    return checked(path, await file.readFile(), most);
  } finally {
    await file.close();
  }
}

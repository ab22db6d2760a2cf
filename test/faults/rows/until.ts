import { looking } from "../stage/looking.ts";

/** Waits for it, at most half a minute; the row's expectations say what is missing then. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  await looking(
    async () => ((await isSo().catch(() => false)) ? true : undefined),
    30_000,
    async () => "",
  ).catch(() => undefined);
}

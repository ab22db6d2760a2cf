import type { Ask } from "./ask.ts";
import { at, parseJson, payloadOf, textAt } from "./payload.ts";

/** A pending ask whose gateway died, now ours. It has no trigger any more. */
export interface LeftAsk {
  ask: Ask;
  sealedResponseUrl?: string;
  /** Too old to be done now, or gateways died over it before: only to be told. */
  tooLate: boolean;
}

/** What is written down. The Home tab and shortcuts are only kept from running twice: they change nothing by themselves. */
const kinds: ReadonlySet<string> = new Set<Ask["kind"]>([
  "command",
  "mention",
  "button",
  "submission",
]);

export function isRecorded(ask: Ask): boolean {
  return kinds.has(ask.kind);
}

/** Without what expires (trigger) and what is a capability (response URL, sealed only). */
export function toRecord(ask: Ask, sealedResponseUrl: string | undefined): string {
  const { triggerId: _trigger, responseUrl: _url, ...kept } = ask;
  return JSON.stringify({
    version: 1,
    ask: kept,
    ...(sealedResponseUrl === undefined ? {} : { sealedResponseUrl }),
  });
}

/** Undefined for what another version wrote in a shape we don't know. */
export function fromRecord(text: string, tooLate: boolean): LeftAsk | undefined {
  const record = payloadOf(parseJson(text));
  const [ask, sealed] = [record["ask"], textAt(record, "sealedResponseUrl")];
  if (record["version"] !== 1 || !isAsk(ask)) return undefined;
  return { ask, tooLate, ...(sealed === "" ? {} : { sealedResponseUrl: sealed }) };
}

/** Only `toRecord` writes records of version 1, so the outline is enough. */
function isAsk(value: unknown): value is Ask {
  return (
    textAt(value, "id") !== "" &&
    textAt(value, "userId") !== "" &&
    kinds.has(textAt(value, "kind")) &&
    typeof at(value, "at") === "number"
  );
}

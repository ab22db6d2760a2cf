const words: Readonly<Record<string, string>> = {
  draft: "waits for approval",
  authorized: "waits to begin",
  sending: "being sent",
  accepted: "running",
  unclear: "being looked into",
  "not-applied": "did not happen",
  unknown: "outcome unknown",
};

/** A state of the journal as a person would say it; one that this version doesn't know is shown as it is. */
export function stateWords(state: string): string {
  return Object.hasOwn(words, state) ? (words[state] ?? state) : state;
}

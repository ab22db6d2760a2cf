import type { PolicyRefusal } from "./refusal.ts";

interface Names {
  nameOf(id: string): string | undefined;
  learnNames(ids: readonly string[]): Promise<void>;
}

/**
 * Asks `permit.ts`, and asks again once the people and groups are known whom a refusal names, so
 * that it is read as names and not as IDs.
 */
export async function withNames<Answer extends { refused?: PolicyRefusal }>(
  answerNow: () => Answer,
  { nameOf, learnNames }: Names,
): Promise<Answer> {
  const answer = answerNow();
  const unnamed = answer.refused?.allowed?.filter((id) => nameOf(id) === undefined) ?? [];
  if (unnamed.length === 0) return answer;
  await learnNames(unnamed);
  return answerNow();
}

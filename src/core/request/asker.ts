import type { Journal } from "./journal.ts";
import { askerOf, repeatedBy } from "./origin.ts";
import type { RequestRecord } from "./record.ts";

/**
 * Finds the person who asked others to make this request, who can't approve it. A repeated request
 * is believed before its repetition, which an older release, or a form that it opened, may have
 * stored without the asker. The repetition's own word counts once the former request is gone.
 */
export async function findAsker(
  record: Pick<RequestRecord, "origin">,
  store: Pick<Journal, "get">,
): Promise<string | undefined> {
  const formerId = repeatedBy(record);
  const former = formerId === undefined ? undefined : await store.get(formerId);
  const asker = former && (await findAsker(former.record, store));
  return asker ?? askerOf(record);
}

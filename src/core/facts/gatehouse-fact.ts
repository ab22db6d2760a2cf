import { messageOf } from "../../errors.ts";
import { type Finding, trouble } from "../../messages/finding.ts";
import { redisTrouble } from "../../redis/redis.ts";

/**
 * A thing that is known now about Gatehouse itself, as a `Fact` is known about a target. Its
 * `severity` and `kind` decide where it is told, its `text` says it everywhere.
 */
export interface GatehouseFact extends Finding {
  /** The subject as people read it: `Compute service`. */
  kind: string;
  /** The error that its source met when it was read: there may be more to know. */
  unread?: unknown;
}

/** Knows facts of one kind. */
export interface GatehouseFactSource {
  kind: string;
  /** Reads only. Undefined where there is nothing to say. Rejects when it can't say. */
  read(): Promise<Finding | undefined>;
}

/**
 * Asks all sources at once, and keeps their order. A source that can't be read becomes a fact that
 * says so.
 */
export async function readGatehouseFacts(
  sources: readonly GatehouseFactSource[],
): Promise<readonly GatehouseFact[]> {
  const read = sources.map(async ({ kind, read: readSource }): Promise<GatehouseFact[]> => {
    try {
      const finding = await readSource();
      return finding ? [{ ...finding, kind }] : [];
    } catch (error) {
      return [{ ...trouble(redisTrouble(error) ?? messageOf(error)), kind, unread: error }];
    }
  });
  return (await Promise.all(read)).flat();
}

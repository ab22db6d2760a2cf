import { UserError } from "../errors.ts";
import { counted } from "../messages/markdown.ts";
import type { RedisPlace } from "../redis/redis.ts";
import type { TrailVerdict } from "../audit/verify.ts";
import { type Erasure, erasePerson } from "../operate/erase-person.ts";

/** Lists the places that Gatehouse can't erase, and when each forgets by itself. */
const elsewhere = `Not erased, because Gatehouse can't:
  Slack's messages and profiles           as long as the workspace keeps them
  the log, and traces if you load an SDK  as long as you keep them
  the memory of running processes         a minute; names in answers until they restart
  Redis's files on disk                   until its next BGREWRITEAOF and BGSAVE
  backups of Redis, exports, archives     until you delete them. Restoring one brings the person back: run this again
  gatehouse.yml, and its former versions  wherever you keep them
  Redis, fingerprints of their requests   a day
DATA_DIR (ledgers, heads, the key) and metrics name nobody.
`;

/**
 * `audit erase --person` in a terminal. Throws a UserError when the trail is broken, because what
 * is left of a record would otherwise be vouched for although it isn't what was sealed.
 */
export async function erasePersonAndReport(
  { redis, key }: RedisPlace,
  erasure: Omit<Erasure, "redis" | "key">,
  {
    verify,
    write,
  }: { verify: () => Promise<Pick<TrailVerdict, "standing">>; write: (text: string) => void },
): Promise<number> {
  const { person } = erasure;
  if (!/^[UW][A-Z0-9]{2,}$/.test(person))
    throw new UserError(`${person} is not the ID of a person`, "it looks like U012ABCDEF");
  if ((await verify()).standing === "broken")
    throw new UserError(
      "The audit trail is broken, so nothing is erased",
      "run audit verify, and find out why",
    );
  const erased = await erasePerson({ ...erasure, redis, key });
  if (!erased) {
    write(`Nothing in Redis names ${person}.\n${elsewhere}`);
    return 0;
  }
  const { pseudonym, records, keys } = erased;
  write(
    `${person} is ${pseudonym} now: in ${counted(records, "record")} of the audit trail, and in ${counted(keys, "other key")}.\n${elsewhere}`,
  );
  return 0;
}

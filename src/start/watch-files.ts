import type { ChangingFile } from "../config/changing-file.ts";
import { parseRedisUrl } from "../config/redis-address.ts";
import { hideSecret, type Log } from "../log/log.ts";

/** From now on what changes in the files is kept out of the log, and that it changed stands there. */
export function watchFiles(files: ReadonlyMap<string, ChangingFile>, log: Log): void {
  for (const [variable, file] of files) {
    file.onNews = (news) => {
      if (news.is === "kept") return log.warn("config.file-unusable", { variable, why: news.why });
      hideSecret(variable === "REDIS_URL" ? (parseRedisUrl(news.text).password ?? "") : news.text);
      log.info("config.file-changed", { variable });
    };
  }
}

import { startRedis } from "../../../../sandbox/ensure-redis.ts";
import type { Stage } from "../../stage/stage.ts";

/** Starts the stage's Redis again, in the same place with the same data. */
export async function revive(stage: Stage, args: readonly string[] = []): Promise<void> {
  const { dir, port } = stage.redisServer;
  stage.redisServer = await startRedis({ dir, port, args });
}

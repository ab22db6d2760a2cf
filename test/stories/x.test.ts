import { it } from "vitest";
import { startWorld } from "../support/start-world.ts";
import { privateRedis } from "../support/with-redis.ts";
it("redis", async () => {
    const redis = await privateRedis();
    const world = await startWorld({ redisUrl: redis.url });
    await redis.kill();
    const t = performance.now();
    const lap = (w: string) => console.log(w, Math.round(performance.now() - t));
    await redis.start(); lap("redis up");
    for (let i = 0; i < 100; i++) {
      await world.olivia.types("ops", "/vm restart web-2");
      const last = world.olivia.seesChannel("ops").messages.at(-1)?.text ?? "";
      if (!/Redis is down/.test(last)) break;
      await new Promise((r) => setTimeout(r, 50));
    }
    lap("taken");
    await world.ended().then((r) => console.log(r.state), (e) => console.log(String(e).slice(0, 1500))); lap("ended");
    console.log(JSON.stringify(world.olivia.seesChannel("ops").messages.map((m) => m.text)));
    console.log(world.lines.filter((l) => !/"level":"debug"/.test(l)).join("").slice(0, 3000));
    await world.close(); lap("closed");
    await redis[Symbol.asyncDispose]();
}, 60000);

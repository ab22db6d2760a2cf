import { expect, it } from "vitest";
import { silentLog } from "../../src/log/log.ts";
import { repeatHere } from "../../src/redis/repeat.ts";
import { until } from "../support/until.ts";

it("repeats a task also after a failure, never twice at once, and whoever asks for it now joins the one that runs", async () => {
  let [times, running] = [0, 0];
  const fifth = Promise.withResolvers<void>();
  const repeated = repeatHere(
    "test",
    1,
    async () => {
      running += 1;
      expect(running).toBe(1);
      await Promise.resolve();
      running -= 1;
      times += 1;
      if (times === 5) fifth.resolve();
      throw new Error("fails every time");
    },
    silentLog(),
  );
  await Promise.all([repeated.now(), repeated.now()]);
  expect(times).toBe(1);
  await fifth.promise;
  await repeated.close();
});

it("ends with the task that runs, and begins none after that", async () => {
  let times = 0;
  const hang = Promise.withResolvers<void>();
  const repeated = repeatHere(
    "test",
    1,
    async () => {
      times += 1;
      await hang.promise;
    },
    silentLog(),
  );
  await until(() => times).toBe(1);
  let isClosed = false;
  const closing = repeated.close().then(() => (isClosed = true));
  await Promise.resolve();
  expect(isClosed).toBe(false);
  hang.resolve();
  await closing;
  await repeated.now();
  expect(times).toBe(1);
});

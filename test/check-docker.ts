// npm run check:docker: README's Docker way in the containers that are shipped, with the engine that is there. As root on Debian it
// starts one of its own where there is none.
import { messageOf } from "../src/errors.ts";
import { provideEngine } from "./support/docker-engine.ts";
import { runTests } from "./support/run-tests.ts";

try {
  await using _ = await provideEngine();
  process.exitCode = await runTests(["test/operate/compose.system.test.ts"], {
    needsPrograms: false,
  });
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = 1;
}

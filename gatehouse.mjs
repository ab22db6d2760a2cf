// Gatehouse's command line: node gatehouse.mjs --help
import { begin } from "./src/operate/runtime.mjs";

void begin(new URL("src/main.ts", import.meta.url));

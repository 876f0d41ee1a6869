// Formats the page's style sheets, a rule on one line where it fits; with --check, fails if one is not formatted.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createFromBuffer } from "@dprint/formatter";

const PAGE = new URL("../src/glassformer/page/", import.meta.url);
const PLUGIN = new URL("node_modules/dprint-plugin-malva/plugin.wasm", import.meta.url);

const styles = createFromBuffer(readFileSync(PLUGIN));
styles.setConfig(
  { lineWidth: 120, indentWidth: 2 },
  { blockSelectorLinebreak: "wrap", preferSingleLine: true, singleLineBlockThreshold: 30 },
);
for (const filePath of readdirSync(PAGE).filter((name) => name.endsWith(".css"))) {
  const file = new URL(filePath, PAGE);
  const fileText = readFileSync(file, "utf8");
  const formatted = styles.formatText({ filePath, fileText });
  if (formatted === fileText) continue;
  if (process.argv.includes("--check")) {
    console.error(`${filePath} is not formatted; run: make format-page`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, formatted);
  }
}

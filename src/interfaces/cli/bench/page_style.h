// The style sheet of a benchmark's page, for light and dark screens and for paper.
#pragma once

namespace hocket::cli::bench {

inline constexpr const char* kPageStyle = R"css(
:root {
  color-scheme: light dark;
  --paper: #fbfbf9; --card: #ffffff; --ink: #1c2024; --soft: #667079; --rule: #e4e6e3;
  --lib0: #1769d2; --lib0s: #0b9488; --lib1: #d9730d; --lib2: #8a4fc7; --lib3: #c0392b;
  --lib4: #6b7280; --lib5: #a16207; --good: #157a4a; --bad: #c0262d;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1b1f23; --ink: #e8eaec; --soft: #9aa4ad; --rule: #2e343a;
    --lib0: #5aa2ff; --lib0s: #2dd4bf; --lib1: #f59e4b; --lib2: #b794f4; --lib3: #f0776c;
    --lib4: #9ca3af; --lib5: #d6a634; --good: #4ade80; --bad: #f87171;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 1160px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 28px; margin: 0; letter-spacing: -0.02em; }
h3 { font-size: 15px; margin: 14px 0 4px; }
h2 { font-size: 20px; margin: 0 0 10px; letter-spacing: -0.01em; }
header p { margin: 4px 0 0; color: var(--soft); }
section {
  background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px 22px; margin-top: 22px;
}
.facts { display: flex; flex-wrap: wrap; gap: 6px 28px; margin-bottom: 8px; }
.fact { margin: 0; color: var(--soft); }
.fact b { color: var(--ink); font-size: 19px; font-variant-numeric: tabular-nums; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; margin: 0 0 8px; padding: 0; }
.legend li { list-style: none; font-size: 13.5px; }
.legend svg { width: 26px; height: 10px; margin-right: 6px; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr));
  gap: 14px 26px; }
figure { margin: 0; min-width: 0; }
.bars { max-width: 520px; }
figure svg { width: 100%; height: auto; display: block; }
svg { overflow: visible; }
svg .title { font-size: 14px; font-weight: 600; fill: var(--ink); }
svg .tick { font-size: 11px; fill: var(--soft); }
svg .name { font-size: 13px; fill: var(--ink); }
svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .faint { opacity: 0.6; }
svg .reference { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }
.curve .line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.curve.dashed .line { stroke-dasharray: 6 4; }
.curve .band { fill: var(--c); opacity: 0.13; }
.curve circle, .curve .bar { fill: var(--c); }
.curve .aim { fill: transparent; }
.dot:hover circle:not(.aim) { stroke: var(--card); stroke-width: 2; r: 5px; }
.lib0 { --c: var(--lib0); } .lib0s { --c: var(--lib0s); } .lib1 { --c: var(--lib1); }
.lib2 { --c: var(--lib2); } .lib3 { --c: var(--lib3); } .lib4 { --c: var(--lib4); }
.lib5 { --c: var(--lib5); }
details { margin-top: 12px; }
summary { cursor: pointer; color: var(--soft); font-size: 13.5px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin-top: 6px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px; text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
th:first-child, td:first-child { padding-left: 0; }
.left, .config th, .config td { text-align: left; }
.config td { white-space: normal; overflow-wrap: anywhere; }
.config th { vertical-align: top; }
tr.first td { border-top: 1px solid var(--rule); }
td i { display: inline-block; width: 9px; height: 9px; border-radius: 50%; margin-right: 7px;
  background: var(--c); }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
@media print { section { break-inside: avoid; } details { display: none; } }
)css";

}  // namespace hocket::cli::bench

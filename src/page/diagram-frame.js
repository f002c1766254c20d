// What runs in the frame in which a diagram is drawn (`diagram.html`): the library of others, and little of ours around it. The frame has
// no origin, may ask for nothing but these scripts, and is removed when it has answered or takes too long. What it gives is looked at as
// a picture only (`diagram.js`).

import mermaid from "./vendor/mermaid/mermaid.esm.min.mjs";

/** What is in no picture. Browsers would not run or load it in one; here it is not even told. */
const NEVER = "script, foreignObject, iframe, object, embed, audio, video, image, animate, animateMotion, animateTransform, set";

/** The longest text and the most lines of a graph that are drawn. */
const MOST_CHARS = 20_000;
const MOST_EDGES = 300;

/** How long the words of a diagram are that are told to those who do not see it. */
const MOST_WORDS = 400;

/** What tells slices, branches and bars apart, in light and dark; their words are black or white as it fits. */
const PALETTE = ["#5b9a8b", "#c08a3e", "#6c8ebf", "#a678b0", "#b3635b", "#7d8f4e", "#5f8fa0", "#8a7bc0"];

/** Below this contrast words are drawn in black or white. */
const LEAST_CONTRAST = 3;

const tell = (answer) => parent.postMessage(answer, "*");

/** What is drawn in what colours is told first; then, when all is there that it takes, the diagram. */
addEventListener("message", async ({ source, data }) => {
  if (source !== parent) return;
  if (data.text === undefined) await prepare(data);
  else await draw(data.text);
});

let ground = "";

async function prepare({ sample, looks }) {
  try {
    setUp(looks);
    ground = looks.colours.surface;
    // Ours, of the same kind: with it all is loaded that the kind needs, and how long the other takes is its own matter.
    await mermaid.render("sample", sample);
    tell({ state: "ready" });
  } catch {
    tell({ state: "unreachable" });
  }
}

async function draw(text) {
  try {
    const { svg } = await mermaid.render("diagram", text);
    tell({ state: "drawn", ...picture(svg) });
  } catch (error) {
    const reason = String(error?.message);
    if (/limit exceeded/i.test(reason)) tell({ state: "large" });
    else tell({ state: "failed", line: Number(/ on line (\d+)/.exec(reason)?.[1] ?? 0) });
  }
}

tell({ state: "loaded" });

/** Colours and letters are the page's, so that a diagram looks the same whoever has written it. */
function setUp({ isDark, colours: { text, line, accent, soft, surface, sunken, note }, font }) {
  const palette = (name, first) => Object.fromEntries(PALETTE.map((colour, at) => [`${name}${at + first}`, colour]));
  const config = {
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    htmlLabels: false,
    layout: "dagre",
    look: "classic",
    maxTextSize: MOST_CHARS,
    maxEdges: MOST_EDGES,
    fontFamily: font,
    darkMode: isDark,
    theme: "base",
    themeVariables: {
      darkMode: isDark, fontFamily: font, background: surface, textColor: text, titleColor: text, lineColor: line,
      primaryColor: soft, primaryTextColor: text, primaryBorderColor: accent, secondaryColor: note, secondaryTextColor: text, tertiaryColor: sunken, tertiaryTextColor: text,
      noteBkgColor: note, noteTextColor: text, edgeLabelBackground: surface, clusterBkg: sunken, clusterBorder: line, sequenceNumberColor: surface,
      ...palette("cScale", 0), ...palette("git", 0), ...palette("pie", 1), pieStrokeColor: surface, pieOuterStrokeColor: line,
      xyChart: { plotColorPalette: PALETTE.join(", ") },
    },
  };
  // A diagram says what is drawn, and the page how: none of its own settings counts.
  mermaid.initialize({ ...config, secure: ["secure", ...Object.keys({ ...mermaid.mermaidAPI.defaultConfig, ...config })] });
}

/** Markup as a picture: well-formed, of a size, and what its words are. */
function picture(markup) {
  const place = document.createElement("div");
  place.innerHTML = markup;
  const svg = place.querySelector("svg");
  for (const node of svg.querySelectorAll(NEVER)) node.remove();
  for (const node of [svg, ...svg.querySelectorAll("*")]) {
    for (const { name, value } of [...node.attributes]) {
      if (/^on/i.test(name) || (/(?:^|:)href$/i.test(name) && !value.startsWith("#"))) node.removeAttribute(name);
    }
  }
  const { width, height } = svg.viewBox.baseVal;
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.style.maxWidth = "";
  document.body.replaceChildren(place);
  centre(svg);
  makeReadable(svg);
  const words = [...svg.querySelectorAll("text")].map((text) => [...text.childNodes].map((row) => row.textContent).join(" ").replace(/\s+/g, " ").trim());
  const title = [...svg.children].find(({ localName }) => localName === "title")?.textContent ?? "";
  return { svg: new XMLSerializer().serializeToString(svg), width, height, title, words: [...new Set(words)].filter(Boolean).join(", ").slice(0, MOST_WORDS) };
}

/** The library leaves the names of states at the left of their boxes, where they are no HTML. */
function centre(svg) {
  for (const label of svg.querySelectorAll(".statediagram-state > .label")) {
    const left = label.transform.baseVal[0]?.matrix.e ?? 0;
    for (const row of label.querySelectorAll("text, text > tspan")) {
      row.setAttribute("text-anchor", "middle");
      row.setAttribute("x", -left);
    }
  }
}

/** Words that can hardly be told from what is below them become black or white: who gives a step a colour thinks of one ground alone. */
function makeReadable(svg) {
  const shapes = [...svg.querySelectorAll("rect, circle, ellipse, polygon, path")].map((node) => ({ node, box: node.getBoundingClientRect(), style: getComputedStyle(node) }))
    .filter(({ node, style }) => /^rgb/.test(style.fill) && Number(style.fillOpacity) * Number(style.opacity) > 0.4 && !node.closest("defs, marker"));
  // The numbers of messages stand on marks, which are found nowhere.
  for (const text of svg.querySelectorAll("text:not(.sequenceNumber)")) {
    const { left, top, width, height } = text.getBoundingClientRect();
    const [x, y] = [left + width / 2, top + height / 2];
    const below = shapes.findLast(({ node, box }) => x >= box.left && x <= box.right && y >= box.top && y <= box.bottom
      && text.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING && node.isPointInFill(new DOMPoint(x, y).matrixTransform(node.getScreenCTM().inverse())));
    const light = luminance(below?.style.fill ?? ground);
    for (const row of [text, ...text.querySelectorAll("tspan")]) {
      const { fill } = getComputedStyle(row);
      if (!/^rgb/.test(fill) || contrast(luminance(fill), light) >= LEAST_CONTRAST) continue;
      row.style.setProperty("fill", contrast(0, light) > contrast(1, light) ? "#111" : "#fff", "important");
    }
  }
}

/** How light a colour is (WCAG 2.2), which is written as `rgb(…)`. */
function luminance(colour) {
  const [red, green, blue] = (colour.match(/[\d.]+/g) ?? [0, 0, 0]).map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);

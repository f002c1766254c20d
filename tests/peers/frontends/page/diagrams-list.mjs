// Diagrams in Mermaid: one of each kind that is drawn, as a model would write it, and those that are meant to do harm.

export const KINDS = [
  ['flow chart', `flowchart TD
    A[Customer places order] --> B{In stock?}
    B -- Yes --> C[Reserve items]
    B -->|No| D[Order more<br/>from supplier]
    C --> E[(Database)]
    D -.-> E
    subgraph Delivery
      F([Pack]) ==> G((Ship))
    end
    E --> F
    classDef hot fill:#f96,stroke:#333
    class D hot`],
  ['sequence', `sequenceDiagram
    autonumber
    participant U as User
    participant S as Server
    U->>+S: Request
    alt ok
      S-->>U: 200 OK
    else refused
      S-->>-U: 403
    end
    Note over U,S: Both <b>wait</b>
    loop Every minute
      U->>S: Ping
    end`],
  ['classes', `classDiagram
    Animal <|-- Duck
    Animal : +int age
    Animal : +isMammal() bool
    class Duck{
      +String beakColor
      +swim()
    }
    Duck "1" --> "*" Egg : lays`],
  ['states', `stateDiagram-v2
    [*] --> Still
    Still --> Moving : push
    Moving --> Still
    state Moving {
      [*] --> Fast
      Fast --> Slow
    }
    Moving --> [*]`],
  ['entities', `erDiagram
    CUSTOMER ||--o{ ORDER : places
    ORDER ||--|{ LINE_ITEM : contains
    CUSTOMER {
      string name PK
      string email
    }`],
  ['gantt', `gantt
    title Release
    dateFormat YYYY-MM-DD
    section Build
    Code :a1, 2026-01-01, 20d
    Test :after a1, 10d
    section Ship
    Roll out :2026-02-01, 5d`],
  ['pie', `pie title Orders
    "Open" : 40
    "Done" : 60`],
  ['git', `gitGraph
    commit id: "one"
    branch develop
    commit id: "two"
    checkout main
    merge develop id: "three"`],
  ['mind map', `mindmap
  root((Plans))
    Goals
      Short
      Long
    Risks
      Money
      Time`],
  ['journey', `journey
    title My day
    section Work
      Tea: 5: Me
      Code: 3: Me, Cat`],
  ['timeline', `timeline
    title History
    2024 : One
    2025 : Two : Three`],
  ['quadrants', `quadrantChart
    title Reach
    x-axis Low --> High
    y-axis Small --> Large
    A: [0.3, 0.6]
    B: [0.7, 0.2]`],
  ['chart', `xychart-beta
    title "Sales"
    x-axis [jan, feb, mar]
    y-axis "Revenue" 0 --> 100
    bar [50, 60, 75]
    line [40, 50, 90]`],
  ['requirements', `requirementDiagram
    requirement test_req {
      id: 1
      text: the test
      risk: high
      verifymethod: test
    }
    element test_entity {
      type: simulation
    }
    test_entity - satisfies -> test_req`],
  ['kanban', `kanban
  Todo
    [Write]
  Done
    [Read]`],
  ['another word for it', `graph LR
    A["Start here"] --> B(End)`],
  ['behind settings and remarks', `---
title: Orders
config:
  theme: forest
---
%%{init: {"theme": "dark"}}%%
%% A remark
flowchart LR
    A[One] --> B[Two]`],
  ['colours of its own', `flowchart LR
    A[Light] --> B[Dark]
    style A fill:#ffffcc,stroke:#333
    style B fill:#102030,stroke:#333`],
];

const label = (text) => `flowchart TD\nA["${text}"] --> B["b"]`;
const directive = (settings) => `%%{init: ${JSON.stringify(settings)}}%%\nflowchart TD\nA["<b>x</b><img src=http://evil.test/i onerror=xss(1)>"] --> B`;
const LOOSE = { securityLevel: 'loose', htmlLabels: true, flowchart: { htmlLabels: true }, dompurifyConfig: { ADD_TAGS: ['script', 'iframe'], ADD_ATTR: ['onerror'] }, secure: [] };

export const HOSTILE = [
  // Markup in words.
  ...['<img src=x onerror=xss(1)>', '<img src=http://evil.test/a.png>', '<script>xss(2)</script>', '<iframe src=http://evil.test/></iframe>', '<svg onload=xss(3)>', '<a href=javascript:xss(4)>x</a>', '<foreignObject><body onload=xss(5)></foreignObject>', '</text><script>xss(6)</script>',
    '<style>@import url(http://evil.test/s.css);</style>', '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=xss(7)&gt;">', '<form action=http://evil.test/><input type=submit></form>', '<object data=http://evil.test/></object>', '<link rel=stylesheet href=http://evil.test/l.css>',
    '<base href=http://evil.test/>', '<meta http-equiv=refresh content=0;url=http://evil.test/>', '<template><img src=x onerror=xss(8)></template>', '\u202Etxt.exe', '$$\\href{javascript:xss(9)}{x}$$', '#lt;img src=x onerror=xss(10)#gt;', '&lt;img src=x onerror=xss(11)&gt;', '`**<img src=x onerror=xss(12)>**`', '`[x](javascript:xss(13)) ![y](http://evil.test/md.png)`', 'fa:fa-<img/src/onerror=xss(14)>'].map(label),
  // Ways out.
  'flowchart TD\nA-->B\nclick A href "javascript:xss(20)"', 'flowchart TD\nA-->B\nclick A href "http://evil.test/" _blank', 'flowchart TD\nA-->B\nclick A call xss("21")', 'flowchart TD\nA-->B\nclick A xss', 'flowchart TD\nA-->B\nclick A "data:text/html,<script>xss(22)</script>"',
  'sequenceDiagram\nparticipant A\nlink A: x @ javascript:xss(23)\nA->>A: y', 'sequenceDiagram\nparticipant A\nlinks A: {"x": "javascript:xss(24)", "y": "http://evil.test/"}\nA->>A: y', 'classDiagram\nclass A\nlink A "javascript:xss(25)"', 'classDiagram\nclass A\nclick A call xss("26")', 'gantt\ndateFormat YYYY-MM-DD\nA :a, 2026-01-01, 1d\nclick a href "javascript:xss(27)"', 'gantt\ndateFormat YYYY-MM-DD\nA :a, 2026-01-01, 1d\nclick a call xss("28")', 'stateDiagram-v2\n[*] --> A\nclick A href "javascript:xss(29)"',
  // Pictures, icons and styles from elsewhere.
  'flowchart TD\nA@{ img: "http://evil.test/pic.png", label: "x", w: 60, h: 60 } --> B', 'flowchart TD\nA@{ img: "javascript:xss(30)", label: "x" } --> B', 'flowchart TD\nA@{ icon: "fa:user", form: "square", label: "x" } --> B', 'flowchart TD\nA-->B\nstyle A fill:url(http://evil.test/f.png)', 'flowchart TD\nA-->B\nclassDef x background:url(http://evil.test/g.png)\nclass A x', 'flowchart TD\nA-->B\nlinkStyle 0 stroke:url(http://evil.test/h.svg#a)', 'flowchart TD\nA-->B\nclassDef x fill:red;}</style><script>xss(31)</script>\nclass A x', 'mindmap\n  root((<img src=x onerror=xss(32)>))\n    A\n    ::icon(fa fa-book)', 'kanban\n  Todo\n    [<img src=x onerror=xss(33)>]@{ ticket: "javascript:xss(34)", assigned: "<b>x" }',
  // Settings of its own.
  directive(LOOSE), directive({ ...LOOSE, securityLevel: 'sandbox' }), directive({ ...LOOSE, securityLevel: 'antiscript' }), directive({ theme: 'base', themeVariables: { primaryColor: 'red; } * { background: url(http://evil.test/v.png)', fontFamily: '"x"; } @import url(http://evil.test/w.css); a {' } }), directive({ themeCSS: '@import url(http://evil.test/c.css); * { background: url(http://evil.test/d.png) }' }), directive({ fontFamily: '</style><script>xss(40)</script>' }),
  directive({ layout: 'elk' }), directive({ look: 'handDrawn' }), directive({ maxTextSize: 1e9, maxEdges: 1e9 }), directive(JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}')), directive({ startOnLoad: true, logLevel: 1, arrowMarkerAbsolute: true }),
  '---\nconfig:\n  securityLevel: loose\n  htmlLabels: true\n  flowchart:\n    htmlLabels: true\n---\nflowchart TD\nA["<img src=x onerror=xss(41)>"] --> B', '---\ntitle: "<img src=x onerror=xss(42)>"\n---\nflowchart TD\nA-->B', '---\n__proto__:\n  x: 1\ntitle: !!js/function "function () { xss(43) }"\n---\nflowchart TD\nA-->B', '---\na: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\ntitle: *d\n---\nflowchart TD\nA-->B', '%%{wrap}%%\n%%{init: {"a": {"a": {"a": 1}}}\nflowchart TD\nA-->B',
  // Names that every object has.
  'flowchart TD\n__proto__ --> constructor\nconstructor --> hasOwnProperty', 'classDiagram\nclass __proto__\n__proto__ : +toString()', 'stateDiagram-v2\n[*] --> __proto__', 'erDiagram\n__proto__ ||--o{ constructor : x', 'sequenceDiagram\nparticipant __proto__\n__proto__->>constructor: x', 'gitGraph\ncommit id: "__proto__"\nbranch constructor', 'pie\n"__proto__" : 1\n"constructor" : 2',
  // Titles and descriptions.
  'flowchart TD\naccTitle: <img src=x onerror=xss(50)>\naccDescr { </desc><script>xss(51)</script> }\nA-->B', 'pie title <img src=x onerror=xss(52)>\n"<script>xss(53)</script>" : 1', 'xychart-beta\ntitle "<img src=x onerror=xss(54)>"\nx-axis ["<script>xss(55)</script>", b]\nbar [1, 2]', 'journey\ntitle <img src=x onerror=xss(56)>\nsection <svg onload=xss(57)>\n<b>x: 3: <i>me', 'timeline\ntitle <script>xss(58)</script>\n<img src=x onerror=xss(59)> : <svg onload=xss(60)>', 'quadrantChart\ntitle <img src=x onerror=xss(61)>\nA: [0.3, 0.6]', 'requirementDiagram\nrequirement "<img src=x onerror=xss(62)>" {\nid: 1\ntext: "<script>xss(63)</script>"\n}', 'erDiagram\n"<img src=x onerror=xss(64)>" ||--o{ B : "<script>xss(65)</script>"', 'gitGraph\ncommit id: "<img src=x onerror=xss(66)>" tag: "<script>xss(67)</script>"', 'sequenceDiagram\nparticipant A as <img src=x onerror=xss(68)>\nNote over A: <script>xss(69)</script>\nA->>A: <svg onload=xss(70)>', 'classDiagram\nclass A["<img src=x onerror=xss(71)>"]\nA : +<script>xss(72)</script>()\nnote for A "<svg onload=xss(73)>"', 'stateDiagram-v2\nstate "<img src=x onerror=xss(74)>" as A\n[*] --> A : <script>xss(75)</script>\nnote right of A: <svg onload=xss(76)>',
  // Too much.
  `flowchart TD\n${Array.from({ length: 290 }, (_, at) => `a${at % 60}-->a${(at * 7 + 1) % 60}`).join('\n')}`, `flowchart TD\n${Array.from({ length: 2_000 }, (_, at) => `a${at}`).join('\n')}`, `flowchart TD\n${'subgraph a\n'.repeat(500)}${'end\n'.repeat(500)}`, `sequenceDiagram\n${'A->>B: x\n'.repeat(1_500)}`, `gantt\ndateFormat YYYY-MM-DD\ntickInterval 1millisecond\nA :2026-01-01, 1000000d`, 'gantt\ndateFormat YYYY-MM-DD\nexcludes weekends, monday, tuesday, wednesday, thursday, friday\nA :2026-01-01, 100000d', `mindmap\n${Array.from({ length: 150 }, (_, at) => `${' '.repeat(at + 1)}x`).join('\n')}`, `pie\n${Array.from({ length: 1_000 }, (_, at) => `"a${at}" : 1`).join('\n')}`, 'xychart-beta\nx-axis 0 --> 1e308\ny-axis -1e308 --> 1e308\nbar [1e308, -1e308]', `stateDiagram-v2\n${'state a {\n'.repeat(100)}${'}\n'.repeat(100)}`, `gitGraph\n${'commit\n'.repeat(1_500)}`, label('x'.repeat(15_000)), label('x '.repeat(7_000)), `flowchart TD\nA-->${'B & '.repeat(100)}C`, `flowchart TD\n${Array.from({ length: 16 }, (_, at) => `a${at}`).join(' & ')} --> ${Array.from({ length: 16 }, (_, at) => `b${at}`).join(' & ')}`,
  `%%{init: ${'{"a":'.repeat(3_000)}`, `flowchart TD\n${'%%{'.repeat(5_000)}`, `---\n${'a: '.repeat(5_000)}\n---\nflowchart TD\nA-->B`, `flowchart TD\n${' '.repeat(15_000)}x`, `sequenceDiagram\n${'#'.repeat(10_000)}`, `flowchart TD\nA[${'['.repeat(8_000)}`, `classDiagram\nclass A~${'List~'.repeat(3_000)}`,
];

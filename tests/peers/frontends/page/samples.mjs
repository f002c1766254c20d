// What the drawings are shown with: a rule and a table of the demo backend, changed in every way.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const demo = (name) => JSON.parse(readFileSync(join(import.meta.dirname, '../../../../config/demo', name), 'utf8'));

const id = (place) => `d1000000-0000-4000-8000-00000000010${place}`;
const edge = (from, to, port, order) => ({ ...(from ? { source_action_id: from } : {}), target_action_id: to, edge_type: from ? 'sequence' : 'start', ...(port ? { source_output: port } : {}), edge_order: order });

const lowStock = demo('rules.json')[0];

/** The saved rule, in a body's shape. */
export const RULE = {
  name: lowStock.name, description: lowStock.description, is_active: true, entity_id: 'e1', trigger_type_id: 't1', trigger_conditions: lowStock.trigger_conditions, actions: lowStock.actions,
  edges: [edge(null, id(1), '', 0), edge(id(1), id(2), 'true', 1), edge(id(1), id(3), 'false', 2)],
};

const [check, notify] = RULE.actions;

/** The same with a step added, one changed, one removed. */
export const CHANGED_RULE = {
  ...RULE, description: 'Warns the warehouse, and orders more',
  actions: [
    { ...check, action_config: { ...check.action_config, conditions: [{ ...check.action_config.conditions[0], value: 25 }] } },
    { ...notify, action_config: { ...notify.action_config, severity: 'critical', recipients: { users: [notify.action_config.recipients.users[0]], roles: ['a0000000-0000-4000-8000-000000000002'] } } },
    { name: 'Order More', action_type: 'create_entity', action_config: { target_entity: 'procurement.purchase_orders', fields: { quantity: 100 } }, is_active: true },
    { name: 'Wait A Day', action_type: 'delay', action_config: { duration: '24h' }, is_active: false },
  ],
  edges: [edge(null, id(1), '', 0), edge(id(1), 'temp:3', 'true', 1), edge('temp:3', id(2), 'success', 2), edge(id(2), 'temp:2', 'success', 3)],
};

const orders = demo('tables.json')[0];

/** The saved table, in a body's shape. */
export const TABLE = { name: orders.name, description: orders.description, config: orders.config };

const columns = structuredClone(orders.config.visual_settings.columns);
delete columns.due_date;
columns.amount.header = 'Total';
columns.amount.format.precision = 0;
columns.amount.width = 140;
columns.priority = { name: 'priority', header: 'Priority', type: 'string', order: 45, sortable: true };
const source = structuredClone(orders.config.data_source[0]);
source.select.columns = source.select.columns.filter(({ name }) => name !== 'due_date').concat({ name: 'priority' });
source.filters.push({ column: 'priority', operator: 'in', value: ['high', 'urgent'], label: 'Priority', dynamic: true });
source.sort = [{ column: 'amount', direction: 'desc', priority: 1 }, { column: 'created_date', direction: 'desc', priority: 2 }];

export const CHANGED_TABLE = { ...TABLE, config: { ...orders.config, title: 'Urgent orders', data_source: [source], visual_settings: { ...orders.config.visual_settings, columns } } };

export const APPROVAL = {
  approval_id: 'a1', tool: 'close_ticket', arguments: { id: 4711, note: 'Closed on request\nof the customer', notify: ['ada@example.com', 'bob@exa\u200Bmple.com'], reason: 'duplicate \u202Etxt.exe' }, digest: 'sha256:5f1d0c', needs: 'user',
};

export const PAYLOAD = { payload_id: 'p1', type: 'late_orders', summary: 'Three orders are late.', data: [{ order: 'SO-1001', customer: 'Ada', days: 4, amount: 120.5 }, { order: 'SO-1007', customer: 'Bob', days: 2, amount: 87 }, { order: 'SO-1010', customer: 'Cy', days: 1, amount: 560 }] };

export const TREE = { payload_id: 'p2', type: 'stock', summary: { items: 12, low: 3 }, data: { warehouse: 'North', items: [{ sku: 'A-1', bins: [{ bin: 'x', quantity: 3 }] }], checked: true } };

export const ANSWER = `## Low Stock Alert

The rule warns **the warehouse** when \`quantity\` falls *below 10*. See [the handbook](https://example.com/rules) or https://example.org/.

1. Check the stock
2. Notify the team
   - by alert
   - ~~by mail~~

| Step | Type | After |
|:-----|:----:|------:|
| Check Stock Level | evaluate_condition | – |
| Notify Warehouse Team | create_alert | 1 |

\`\`\`json
{ "field_name": "quantity", "operator": "less_than", "value": 10 }
\`\`\`

> An image is a link: ![The chart](https://example.com/chart.png)

- [x] done
- [ ] not done
`;

/** An answer with a diagram in it. */
export const DIAGRAM = `An order goes through three systems. What is not in stock is ordered again, and the customer hears of it.

\`\`\`mermaid
flowchart LR
    A([Order placed]) --> B{In stock?}
    B -- yes --> C[Reserve items]
    B -- no --> D[Order from supplier]
    D --> E[Tell the customer]
    D --> C
    C --> F[(Warehouse)]
    F --> G([Shipped])
    style D fill:#ffe9b3,stroke:#b07a00
\`\`\`

The supplier's answer can take two days.`;

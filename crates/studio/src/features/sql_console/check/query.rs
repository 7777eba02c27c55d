//! Whole queries: WITH, set operations, LIMIT.

use std::collections::BTreeSet;
use std::rc::Rc;

use sqlparser::ast::{
    Cte, CteAsMaterialized, Fetch, LimitClause, Query, SetExpr, SetOperator, SetQuantifier,
    TableAlias, Values, With,
};

use super::expression::Env;
use super::name;
use super::refusal::Refusal;
use super::scope::{Columns, Ctes, Output, Relation, Scope};
use super::{Writer, refuse_if};

/// What the body of a query leaves for its ORDER BY, and the columns it gives.
pub(super) struct Body {
    pub(super) output: Output,
    /// The FROM of a plain SELECT; a set operation has none.
    pub(super) relations: Vec<Relation>,
}

impl Writer<'_> {
    pub(super) fn query(
        &mut self,
        query: &Query,
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Output, Refusal> {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        refuse_if(!locks.is_empty(), "Row locking (FOR UPDATE or FOR SHARE)")?;
        refuse_if(for_clause.is_some(), "FOR XML, FOR JSON or FOR BROWSE")?;
        refuse_if(settings.is_some(), "SETTINGS")?;
        refuse_if(format_clause.is_some(), "FORMAT")?;
        refuse_if(!pipe_operators.is_empty(), "The pipe operator")?;

        let own = match with {
            Some(with) => self.with(with, scope, ctes)?,
            None => Vec::new(),
        };
        let ctes = Ctes { outer: Some(ctes), own: &own };
        let body = self.body(body, scope, &ctes)?;
        let env = Env { scope: &Scope::inside(scope, &body.relations), ctes: &ctes };
        if let Some(order_by) = order_by {
            self.order_by_clause(order_by, env, &body.output.columns)?;
        }
        self.limit(limit_clause.as_ref(), fetch.as_ref(), env)?;
        Ok(body.output)
    }

    fn with(
        &mut self,
        with: &With,
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Vec<Relation>, Refusal> {
        let With { with_token: _, recursive, cte_tables } = with;
        self.push(if *recursive { "WITH RECURSIVE " } else { "WITH " });
        let mut own: Vec<Relation> = Vec::new();
        self.list(cte_tables, |writer, cte| {
            let relation = writer.cte(cte, *recursive, &own, scope, ctes)?;
            own.push(relation);
            Ok(())
        })?;
        self.push(" ");
        Ok(own)
    }

    fn cte(
        &mut self,
        cte: &Cte,
        recursive: bool,
        earlier: &[Relation],
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Relation, Refusal> {
        let Cte { alias, query, from, materialized, closing_paren_token: _ } = cte;
        refuse_if(from.is_some(), "FROM after a WITH query")?;
        let (name, listed) = alias_parts(alias)?;
        // An unqualified name that PostgreSQL does not take for this query is looked up in
        // pg_catalog, where every relation begins like this.
        if name.starts_with("pg_") {
            return Err(Refusal::construct(format!("The name {name} for a WITH query")));
        }
        if earlier.iter().any(|other| other.name == name) {
            return Err(Refusal::construct(format!("A second WITH query named {name}")));
        }
        self.push_name(&name);
        self.column_list(&listed);
        self.push(match materialized {
            None => " AS (",
            Some(CteAsMaterialized::Materialized) => " AS MATERIALIZED (",
            Some(CteAsMaterialized::NotMaterialized) => " AS NOT MATERIALIZED (",
        });
        let listed: Columns = Rc::new(listed.into_iter().collect());
        let visible = Ctes { outer: Some(ctes), own: earlier };
        let itself = [Relation { name: name.clone(), columns: Rc::clone(&listed), weight: 1 }];
        let with_itself = Ctes { outer: Some(&visible), own: &itself };
        let output = self.query(query, scope, if recursive { &with_itself } else { &visible })?;
        self.push(")");
        // What is materialized is read like a table.
        let is_table = matches!(materialized, Some(CteAsMaterialized::Materialized));
        let weight = if is_table { 1 } else { output.weight };
        let columns = if listed.is_empty() { output.columns } else { listed };
        Ok(Relation { name, columns, weight })
    }

    fn body(
        &mut self,
        body: &SetExpr,
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Body, Refusal> {
        match body {
            SetExpr::Select(select) => self.select(select, scope, ctes),
            SetExpr::Query(query) => {
                self.push("(");
                let output = self.query(query, scope, ctes)?;
                self.push(")");
                Ok(Body { output, relations: Vec::new() })
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let left = self.operand(left, scope, ctes)?;
                self.push(set_operator(*op)?);
                self.push(quantifier(*set_quantifier)?);
                let right = self.operand(right, scope, ctes)?;
                let weight = left.weight.max(right.weight);
                let output = Output { columns: left.columns, weight };
                Ok(Body { output, relations: Vec::new() })
            }
            SetExpr::Values(values) => self.values(values, scope, ctes),
            SetExpr::Insert(_) => Err(Refusal::construct("INSERT")),
            SetExpr::Update(_) => Err(Refusal::construct("UPDATE")),
            SetExpr::Delete(_) => Err(Refusal::construct("DELETE")),
            SetExpr::Merge(_) => Err(Refusal::construct("MERGE")),
            SetExpr::Table(_) => Err(Refusal::construct("TABLE")),
        }
    }

    /// One side of a set operation, always in brackets.
    fn operand(
        &mut self,
        body: &SetExpr,
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Output, Refusal> {
        if matches!(body, SetExpr::Query(_)) {
            return Ok(self.body(body, scope, ctes)?.output);
        }
        self.push("(");
        let body = self.body(body, scope, ctes)?;
        self.push(")");
        Ok(body.output)
    }

    fn values(
        &mut self,
        values: &Values,
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Body, Refusal> {
        let Values { explicit_row, value_keyword, rows } = values;
        refuse_if(*explicit_row || *value_keyword, "VALUES ROW")?;
        self.push("VALUES ");
        let env = Env { scope, ctes };
        self.list(rows, |writer, row| {
            writer.push("(");
            writer.expressions(&row.content, env)?;
            writer.push(")");
            Ok(())
        })?;
        let width = rows.first().map_or(0, |row| row.content.len());
        let columns = (1..=width).map(|index| format!("column{index}")).collect::<BTreeSet<_>>();
        // Its constants stay where they are.
        let output = Output { columns: Rc::new(columns), weight: 1 };
        Ok(Body { output, relations: Vec::new() })
    }

    fn limit(
        &mut self,
        clause: Option<&LimitClause>,
        fetch: Option<&Fetch>,
        env: Env<'_>,
    ) -> Result<(), Refusal> {
        let (limit, offset) = match clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) => {
                refuse_if(!limit_by.is_empty(), "LIMIT … BY")?;
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                return Err(Refusal::construct("LIMIT with a comma"));
            }
        };
        let fetched = match fetch {
            None => None,
            Some(Fetch { with_ties, percent, quantity }) => {
                refuse_if(*with_ties, "FETCH … WITH TIES")?;
                refuse_if(*percent, "FETCH … PERCENT")?;
                refuse_if(limit.is_some(), "LIMIT beside FETCH")?;
                refuse_if(quantity.is_none(), "FETCH without a number of rows")?;
                quantity.as_ref()
            }
        };
        if let Some(rows) = limit.or(fetched) {
            self.push(" LIMIT ");
            self.expression(rows, env)?;
        }
        if let Some(rows) = offset {
            self.push(" OFFSET ");
            self.expression(rows, env)?;
        }
        Ok(())
    }

    /// Writes `("a", "b")`, or nothing when there is no name.
    pub(super) fn column_list(&mut self, columns: &[String]) {
        if columns.is_empty() {
            return;
        }
        self.push("(");
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            self.push_name(column);
        }
        self.push(")");
    }
}

/// The name of an alias and the columns it lists.
pub(super) fn alias_parts(alias: &TableAlias) -> Result<(String, Vec<String>), Refusal> {
    let TableAlias { explicit: _, name, columns, at } = alias;
    refuse_if(at.is_some(), "AT after an alias")?;
    refuse_if(
        columns.iter().any(|column| column.data_type.is_some()),
        "A column list with types after an alias",
    )?;
    let listed =
        columns.iter().map(|column| name::fold_column(&column.name)).collect::<Result<_, _>>()?;
    Ok((name::fold(name)?, listed))
}

fn set_operator(operator: SetOperator) -> Result<&'static str, Refusal> {
    match operator {
        SetOperator::Union => Ok(" UNION "),
        SetOperator::Except => Ok(" EXCEPT "),
        SetOperator::Intersect => Ok(" INTERSECT "),
        SetOperator::Minus => Err(Refusal::construct("MINUS")),
    }
}

fn quantifier(quantifier: SetQuantifier) -> Result<&'static str, Refusal> {
    match quantifier {
        SetQuantifier::None => Ok(""),
        SetQuantifier::All => Ok("ALL "),
        SetQuantifier::Distinct => Ok("DISTINCT "),
        SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName => {
            Err(Refusal::construct("BY NAME"))
        }
    }
}

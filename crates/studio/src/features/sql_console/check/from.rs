//! FROM: views, WITH queries, subqueries and joins between them.

use std::rc::Rc;

use sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::expression::Env;
use super::query::alias_parts;
use super::refusal::Refusal;
use super::scope::{Ctes, Output, Relation, Scope};
use super::{Writer, name, refuse_if};
use crate::features::sql_console::catalogue::SCHEMA;

/// The relations around a FROM item.
#[derive(Clone, Copy)]
struct Around<'s> {
    scope: &'s Scope<'s>,
    ctes: &'s Ctes<'s>,
    /// What stands to the left, which LATERAL can see.
    left: &'s [Relation],
}

impl Writer<'_> {
    /// Writes ` FROM …`, or nothing, and gives what it brings into scope.
    pub(super) fn relations(
        &mut self,
        from: &[TableWithJoins],
        scope: &Scope<'_>,
        ctes: &Ctes<'_>,
    ) -> Result<Vec<Relation>, Refusal> {
        let mut relations: Vec<Relation> = Vec::new();
        if from.is_empty() {
            return Ok(relations);
        }
        self.push(" FROM ");
        self.list(from, |writer, tree| {
            let brought = writer.join_tree(tree, Around { scope, ctes, left: &relations })?;
            relations.extend(brought);
            Ok(())
        })?;
        Ok(relations)
    }

    fn join_tree(
        &mut self,
        tree: &TableWithJoins,
        around: Around<'_>,
    ) -> Result<Vec<Relation>, Refusal> {
        let TableWithJoins { relation, joins } = tree;
        let mut brought = self.factor(relation, around)?;
        for join in joins {
            let left: Vec<Relation> = around.left.iter().chain(&brought).cloned().collect();
            self.join(join, Around { left: &left, ..around }, &mut brought)?;
        }
        Ok(brought)
    }

    fn join(
        &mut self,
        join: &Join,
        around: Around<'_>,
        brought: &mut Vec<Relation>,
    ) -> Result<(), Refusal> {
        let Join { relation, global, join_operator } = join;
        refuse_if(*global, "GLOBAL JOIN")?;
        let (keyword, constraint) = join_keyword(join_operator)?;
        self.push(if matches!(constraint, JoinConstraint::Natural) { " NATURAL" } else { "" });
        self.push(keyword);
        let right = self.factor(relation, around)?;
        brought.extend(right);
        match constraint {
            JoinConstraint::None | JoinConstraint::Natural => Ok(()),
            JoinConstraint::On(condition) => {
                self.push(" ON ");
                let scope = Scope::inside(around.scope, brought);
                self.expression(condition, Env { scope: &scope, ctes: around.ctes })
            }
            JoinConstraint::Using(columns) => {
                let columns = columns.iter().map(using_column).collect::<Result<Vec<_>, _>>()?;
                self.push(" USING ");
                self.column_list(&columns);
                Ok(())
            }
            JoinConstraint::UsingAlias(..) => Err(Refusal::construct("USING … AS")),
        }
    }

    fn factor(
        &mut self,
        factor: &TableFactor,
        around: Around<'_>,
    ) -> Result<Vec<Relation>, Refusal> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_directives,
                inheritance,
            } => {
                refuse_if(args.is_some(), "A function in FROM")?;
                refuse_if(!with_hints.is_empty(), "WITH after a table")?;
                refuse_if(version.is_some(), "A version of a table")?;
                refuse_if(*with_ordinality, "WITH ORDINALITY")?;
                refuse_if(!partitions.is_empty(), "PARTITION")?;
                refuse_if(json_path.is_some(), "A path after a table")?;
                refuse_if(sample.is_some(), "TABLESAMPLE")?;
                refuse_if(!index_directives.is_empty(), "An index hint")?;
                refuse_if(inheritance.is_some(), "ONLY or * at a table")?;
                Ok(vec![self.relation(name, alias.as_ref(), around.ctes)?])
            }
            TableFactor::Derived { lateral, subquery, alias, sample } => {
                refuse_if(sample.is_some(), "TABLESAMPLE")?;
                let output = if *lateral {
                    self.push("LATERAL (");
                    self.query(subquery, &Scope::inside(around.scope, around.left), around.ctes)?
                } else {
                    self.push("(");
                    self.query(subquery, around.scope, around.ctes)?
                };
                self.push(")");
                let Some(alias) = alias else {
                    return Err(Refusal::because(
                        "subquery without a name",
                        "A subquery in FROM needs a name: write (SELECT …) AS name.",
                    ));
                };
                Ok(vec![self.aliased(alias, output)?])
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                refuse_if(alias.is_some(), "An alias for a join in brackets")?;
                self.push("(");
                let brought = self.join_tree(table_with_joins, around)?;
                self.push(")");
                Ok(brought)
            }
            TableFactor::TableFunction { .. }
            | TableFactor::Function { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::JsonTable { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. }
            | TableFactor::UnpivotExpr { .. } => Err(Refusal::construct("A function in FROM")),
            TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::MatchRecognize { .. } => {
                Err(Refusal::construct("PIVOT, UNPIVOT or MATCH_RECOGNIZE"))
            }
        }
    }

    /// A WITH query that is in scope, else a view of the catalogue, always with its schema.
    fn relation(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        ctes: &Ctes<'_>,
    ) -> Result<Relation, Refusal> {
        let parts = name::fold_all(name)?;
        let found = match parts.as_slice() {
            [name] => match ctes.find(name) {
                Some(cte) => {
                    self.push_name(name);
                    cte.clone()
                }
                None => self.view(name)?,
            },
            [schema, name] if schema == SCHEMA => self.view(name)?,
            [schema, ..] if schema == "pg_catalog" || schema == "information_schema" => {
                return Err(Refusal::construct(format!("Catalogue {schema}")));
            }
            parts => return Err(unknown_relation(&parts.join("."))),
        };
        match alias {
            None => Ok(found),
            Some(alias) => {
                self.aliased(alias, Output { columns: found.columns, weight: found.weight })
            }
        }
    }

    fn view(&mut self, name: &str) -> Result<Relation, Refusal> {
        let view = self.catalogue.view(name).ok_or_else(|| unknown_relation(name))?;
        self.views.insert(view.name);
        self.push_name(SCHEMA);
        self.push(".");
        self.push_name(name);
        let columns = view.columns.iter().map(|column| column.name.to_owned()).collect();
        Ok(Relation { name: name.to_owned(), columns: Rc::new(columns), weight: 1 })
    }

    /// Writes the alias. Where it lists columns, only those can be named with a dot: the rest would
    /// need their order to be known.
    fn aliased(&mut self, alias: &TableAlias, output: Output) -> Result<Relation, Refusal> {
        let (name, listed) = alias_parts(alias)?;
        self.push(" AS ");
        self.push_name(&name);
        self.column_list(&listed);
        let columns =
            if listed.is_empty() { output.columns } else { Rc::new(listed.into_iter().collect()) };
        Ok(Relation { name, columns, weight: output.weight })
    }
}

fn unknown_relation(name: &str) -> Refusal {
    Refusal::because(
        format!("relation {name}"),
        format!("{name} is not one of the console's views; GET /api/v1/sql/catalogue lists them."),
    )
}

fn using_column(column: &ObjectName) -> Result<String, Refusal> {
    match column.0.as_slice() {
        [part] => part
            .as_ident()
            .map_or_else(|| Err(Refusal::construct("A computed name")), name::fold_column),
        _ => Err(Refusal::construct("A dotted name in USING")),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not listed is refused")]
fn join_keyword(operator: &JoinOperator) -> Result<(&'static str, &JoinConstraint), Refusal> {
    match operator {
        JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => {
            Ok((" JOIN ", constraint))
        }
        JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
            Ok((" LEFT JOIN ", constraint))
        }
        JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
            Ok((" RIGHT JOIN ", constraint))
        }
        JoinOperator::FullOuter(constraint) => Ok((" FULL JOIN ", constraint)),
        JoinOperator::CrossJoin(constraint) => Ok((" CROSS JOIN ", constraint)),
        _ => Err(Refusal::construct("This kind of join")),
    }
}
